//! A PostgreSQL server of a test's own: an unprivileged user's process on a free port of the loopback interface, in a folder that is
//! removed with it. Stopped by its own id, also when the test fails.
//!
//! The file stands alone (standard library and `tempfile`), so that the driver's own tests can take it in too.

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server.
pub struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    settings: Vec<String>,
    port: u16,
    process: Option<Child>,
}

/// Places in a server's log that a slot stands for, as numbers of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its reader has acknowledged everything before.
    pub acknowledged: u64,
    /// The server keeps everything from here on.
    pub kept_from: u64,
}

/// Where a release's programs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// 15, the distribution's package.
    Fifteen,
    /// 18, the newest that the source is built for.
    Eighteen,
}

/// Generous: it is there to end a test that hangs, not to judge speed.
const DEADLINE: Duration = Duration::from_secs(120);

impl Release {
    /// The folder of its programs: `make test` names it by a variable; a test started by hand finds the distribution's.
    fn programs(self) -> PathBuf {
        let (variable, usual) = match self {
            Release::Fifteen => ("URUTAU_POSTGRES_15", Some("/usr/lib/postgresql/15/bin")),
            Release::Eighteen => ("URUTAU_POSTGRES_18", None),
        };
        let found = std::env::var_os(variable).map(PathBuf::from).or_else(|| usual.map(PathBuf::from));
        let found = found.unwrap_or_else(|| panic!("{variable} is not set: scripts/postgres prints what it must be"));
        assert!(found.join("postgres").is_file(), "{variable}: there is no PostgreSQL in '{}'", found.display());
        found
    }
}

impl Postgres {
    /// A fresh server with these settings (`name=value`), ready for connections.
    pub fn start(release: Release, settings: &[&str]) -> Postgres {
        let mut server = Postgres {
            programs: release.programs(),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            port: free_port(),
            process: None,
            folder: folder_of_its_own(),
        };
        let made = server
            .program("initdb")
            .arg("-D")
            .arg(server.data())
            .args(["-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync"])
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.go();
        server
    }

    /// A standby of this server, with its settings, following it.
    pub fn standby(&self) -> Postgres {
        let folder = folder_of_its_own();
        let mut server = Postgres {
            programs: self.programs.clone(),
            settings: self.settings.clone(),
            port: free_port(),
            process: None,
            folder,
        };
        let made = server
            .program("pg_basebackup")
            .args(["-R", "-c", "fast", "-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), "-D"])
            .arg(server.data())
            .output()
            .expect("pg_basebackup starts");
        assert!(made.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&made.stderr));
        server.go();
        server
    }

    /// Where its programs are.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Gives the next transaction this number, as `pg_resetwal` takes it. Only while it is stopped.
    pub fn set_next_xid(&self, epoch: u32, xid: u32) {
        let mut command = self.program("pg_resetwal");
        command.args(["-e", &epoch.to_string(), "-x", &xid.to_string()]).arg("-D").arg(self.data());
        let made = command.output().expect("pg_resetwal starts");
        assert!(made.status.success(), "pg_resetwal: {}", String::from_utf8_lossy(&made.stderr));
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of one of its databases, for a pipeline file.
    pub fn uri(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The folder of its data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What a statement answers: a line a row, values with `|` between them. Panics with what the server says against it.
    #[track_caller]
    pub fn sql(&self, database: &str, statement: &str) -> String {
        self.try_sql(database, statement).unwrap_or_else(|said| panic!("{statement}\n{said}"))
    }

    /// A session of psql's, to be given a statement.
    pub fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres", "-d", database]);
        psql.arg("-p").arg(self.port.to_string());
        psql
    }

    /// A session that does this beside the test. It ends with the server, if not before.
    pub fn session(&self, database: &str, statement: &str) -> Child {
        let mut psql = self.psql(database);
        psql.args(["-c", statement]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("psql starts")
    }

    /// What a statement answers, or what the server says against it.
    pub fn try_sql(&self, database: &str, statement: &str) -> Result<String, String> {
        let mut psql =
            self.psql(database).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql starts");
        // By a pipe, since a statement may be longer than an argument can be; psql reads all before it answers in bulk.
        let mut input = psql.stdin.take().expect("a pipe");
        let written = input.write_all(statement.as_bytes());
        drop(input);
        let said = psql.wait_with_output().expect("psql ends");
        match said.status.success() && written.is_ok() {
            true => Ok(String::from_utf8_lossy(&said.stdout).trim_end_matches('\n').to_owned()),
            false => Err(String::from_utf8_lossy(&said.stderr).into_owned()),
        }
    }

    /// Where its log ends, as a number of bytes: everything that was committed is before.
    pub fn log_end(&self) -> u64 {
        self.number("pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
    }

    /// Up to where a slot's reader has acknowledged the log, and from where on the server keeps it for that slot.
    pub fn slot(&self, name: &str) -> Slot {
        let of = |column: &str| {
            self.number(&format!("(SELECT {column} - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = '{name}')"))
        };
        Slot { acknowledged: of("confirmed_flush_lsn"), kept_from: of("restart_lsn") }
    }

    fn number(&self, expression: &str) -> u64 {
        self.sql("postgres", &format!("SELECT ({expression})::bigint")).parse().expect("a number")
    }

    /// Stops it at once and starts it again, on the same port.
    pub fn restart(&mut self) {
        self.stop();
        self.go();
    }

    /// Stops it: sessions are ended, what is committed stays. A fast shutdown, then an immediate one.
    pub fn stop(&mut self) {
        self.end(&["INT", "QUIT"]);
    }

    /// Ends it without a shutdown, as a crash does: at its next start it recovers from its log.
    pub fn crash(&mut self) {
        self.end(&["QUIT"]);
    }

    fn end(&mut self, signals: &[&str]) {
        let Some(mut process) = self.process.take() else { return };
        for signal in signals {
            let _ = Command::new("kill").args(["-s", signal, &process.id().to_string()]).stderr(Stdio::null()).status();
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(20) {
                if process.try_wait().is_ok_and(|ended| ended.is_some()) {
                    return;
                }
                pause();
            }
        }
        let _ = process.kill();
        let _ = process.wait();
    }

    /// Starts it where its data is.
    pub fn go(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).expect("a log file");
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
        let settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "wal_level=logical",
            "max_replication_slots=40",
            "max_wal_senders=40",
            "fsync=off",
        ];
        for setting in settings.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log file")).stderr(log);
        self.process = Some(command.spawn().expect("postgres starts"));
        let begun = Instant::now();
        while self.try_sql("postgres", "SELECT 1").is_err() {
            let ended = self.process.as_mut().is_none_or(|process| process.try_wait().is_ok_and(|ended| ended.is_some()));
            assert!(!ended && begun.elapsed() < DEADLINE, "the server does not come up:\n{}", self.log());
            pause();
        }
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.folder.path()).env_remove("PGDATA").env("LC_ALL", "C");
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A folder in which the server's user may write.
fn folder_of_its_own() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("urutau-postgres-").tempdir().expect("a folder for a server");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("the folder's rights can be set");
    if let Some((user, group)) = unprivileged() {
        chown(folder.path(), Some(user), Some(group)).expect("the folder can be given away");
    }
    folder
}

/// As root the server refuses to run: then it is `nobody`'s.
fn unprivileged() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("the table of users can be read");
    let line = users.lines().find(|line| line.starts_with("nobody:")).expect("there is a user 'nobody'");
    let numbers: Vec<u32> = line.split(':').skip(2).take(2).filter_map(|number| number.parse().ok()).collect();
    Some((numbers[0], numbers[1]))
}

/// A port of the loopback interface that nobody listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a port has a number").port()
}

/// Writes a file that the server's user can read.
pub fn write_for_server(path: &Path, content: &str, mode: u32) {
    std::fs::write(path, content).expect("a file can be written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("the file's rights can be set");
    if let Some((user, group)) = unprivileged() {
        chown(path, Some(user), Some(group)).expect("the file can be given away");
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's own thread, waiting for another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
