//! A position store in a directory, for any number of processes, without a lock.
//!
//! The text `pipeline` is kept in `pipeline.<n>.state`; the file with the highest number is the one that counts, and its
//! first line holds its token, `<n>.<random>`. To replace number 7 is to create number 8, and to have created it is to
//! have won: the new file is written and synced under a name of its own and then given its number by `link(2)`, which
//! refuses a name that exists, atomically and on every POSIX file system, also across machines. A lock would do as well
//! until the process that holds it is stopped: then nobody could go on. Here a stopped process holds up nobody, and finds
//! out when it wakes.
//!
//! Old files are removed, and that is where a link alone would not be enough: a process that was stopped between looking
//! and linking could create number 8 a second time, long after the first 8 was removed. So
//! - number 1 is never removed: nobody else can begin;
//! - others are removed in rising order, the newest [`KEPT`] stay, and after linking number 8 the winner must still find
//!   number 7 *with the token that it expected*. If it is there, no number 8 can have been removed before. If it is gone,
//!   the answer is `Unknown`, and the file, which is not the newest, is taken back.
//!
//! Assumed of the file system: hard links; a listing of a directory shows every file that was there before the listing
//! began and was not removed while it ran; `fsync` of a file and of a directory mean what they say. A file system without
//! links is noticed at the first replacement, by name.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use kernel::id::Token;

use super::{PositionStore, Replaced};
use crate::{Error, Kind, Versioned};

/// How many of a text's newest files stay. More than one, so that a replacement that goes on while it is looked at does not
/// take the file away from under the reader.
const KEPT: u64 = 8;

/// How often a reader looks again when the newest file is replaced and removed while it reads.
const LOOKS_MAX: usize = 64;

/// What the first line of each file begins with.
const MARK: &str = "urutau-position ";

/// Texts in a directory. It is made when the first text is stored.
#[derive(Clone, Debug)]
pub struct FileStore {
    directory: PathBuf,
}

/// The newest file of a text.
struct Head {
    number: u64,
    token: Token,
    text: Option<String>,
}

/// A new file that has no number yet.
struct Prepared {
    /// The number that it wants: one more than what was expected.
    number: u64,
    token: Token,
    expected: Token,
    unnumbered: PathBuf,
}

impl FileStore {
    /// The texts that are kept in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// [`PositionStore::read`], for callers that may block.
    pub fn read_now(&self, name: &str) -> Result<Versioned<Option<String>>, Error> {
        let head = self.head(name).map_err(|error| self.cannot("read", name, &error))?;
        Ok(Versioned { value: head.text, token: head.token })
    }

    /// [`PositionStore::replace`], for callers that may block.
    pub fn replace_now(&self, name: &str, expected: &Token, text: &str) -> Replaced {
        match self.prepare(name, expected, text) {
            Ok(Ok(prepared)) => self.publish(name, &prepared),
            Ok(Err(found)) => Replaced::Conflict { found },
            Err(error) => Replaced::Failed(self.cannot("store", name, &error)),
        }
    }

    /// Writes the new file, if what is there still is what was expected.
    fn prepare(&self, name: &str, expected: &Token, text: &str) -> io::Result<Result<Prepared, Versioned<Option<String>>>> {
        let head = self.head(name)?;
        if head.token != *expected {
            return Ok(Err(Versioned { value: head.text, token: head.token }));
        }
        make_directory(&self.directory)?;
        let number = head.number + 1;
        let random = random();
        let token = Token::from(format!("{number}.{random:016x}"));
        let unnumbered = self.directory.join(format!(".{}.{number}.{random:016x}.new", file_name(name)));
        let written = File::create_new(&unnumbered).and_then(|mut file| {
            file.write_all(format!("{MARK}{token}\n{text}").as_bytes())?;
            file.sync_all()
        });
        if let Err(error) = written {
            let _ = fs::remove_file(&unnumbered); // Half a file without a number is seen by nobody.
            return Err(error);
        }
        Ok(Ok(Prepared { number, token, expected: expected.clone(), unnumbered }))
    }

    /// Gives the new file its number: the one act that decides.
    fn publish(&self, name: &str, new: &Prepared) -> Replaced {
        let numbered = self.path(name, new.number);
        let linked = fs::hard_link(&new.unnumbered, &numbered);
        let _ = fs::remove_file(&new.unnumbered); // If it stays, the next replacement removes it.
        match linked {
            Ok(()) => {}
            // Over a network a link can be made and its answer lost; the repetition then says that the name exists.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.holds(name, new.number, &new.token) => {}
            // The number is taken; if it was for long, the winner has tidied up what wanted it too.
            Err(error) if [ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&error.kind()) => {
                return match self.read_now(name) {
                    Ok(found) if found.token != new.expected => Replaced::Conflict { found },
                    Ok(_) => Replaced::Failed(self.cannot("store", name, &error)),
                    Err(error) => Replaced::Failed(error),
                };
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return Replaced::Failed(Error::new(
                    Kind::Config,
                    "position-no-links",
                    format!("the file system of {} has no hard links: {error}", self.directory.display()),
                    "keep the positions on a local file system",
                ));
            }
            Err(error) => return Replaced::Unknown { why: self.cannot("store", name, &error).to_string() },
        }
        if let Err(error) = sync_directory(&self.directory) {
            return Replaced::Unknown { why: self.cannot("sync", name, &error).to_string() };
        }
        if new.number > 1 && !self.holds(name, new.number - 1, &new.expected) {
            return self.overtaken(name, new);
        }
        self.clean(name, new.number);
        Replaced::Stored { token: new.token.clone() }
    }

    /// What was expected is gone: either others went on from the file just made, or they had gone on before.
    fn overtaken(&self, name: &str, new: &Prepared) -> Replaced {
        let newest = self.numbers(name).ok().and_then(|numbers| numbers.last().copied());
        if newest.is_some_and(|newest| newest > new.number) && self.holds(name, new.number, &new.token) {
            let _ = fs::remove_file(self.path(name, new.number));
        }
        Replaced::Unknown {
            why: format!("the text '{name}' in {} was replaced several times meanwhile", self.directory.display()),
        }
    }

    fn head(&self, name: &str) -> io::Result<Head> {
        for _ in 0..LOOKS_MAX {
            let Some(number) = self.numbers(name)?.last().copied() else {
                return Ok(Head { number: 0, token: Token::from("0"), text: None });
            };
            match fs::read_to_string(self.path(name, number)) {
                Ok(content) => {
                    let (token, text) = parse(&content, number).ok_or_else(|| self.unreadable(name, number))?;
                    // Its writer may not have come so far; what is reported must not vanish with the power.
                    sync_directory(&self.directory)?;
                    return Ok(Head { number, token, text: Some(text.to_string()) });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::TimedOut, "it was replaced each time it was looked at"))
    }

    /// The numbers of a text's files.
    fn numbers(&self, name: &str) -> io::Result<BTreeSet<u64>> {
        let start = format!("{}.", file_name(name));
        let number = |file: &str| file.strip_prefix(&start)?.strip_suffix(".state")?.parse().ok();
        Ok(self.files()?.iter().filter_map(|file| number(file)).collect())
    }

    fn files(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // A name that is not Unicode is none of ours.
        entries.filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose()).collect()
    }

    fn holds(&self, name: &str, number: u64, token: &Token) -> bool {
        fs::read_to_string(self.path(name, number))
            .is_ok_and(|content| parse(&content, number).is_some_and(|(found, _)| found == *token))
    }

    /// Removes what is not needed any more, best effort: the lowest first, so that no file goes before the one it followed.
    fn clean(&self, name: &str, newest: u64) {
        let Ok(numbers) = self.numbers(name) else { return };
        for number in numbers.range(2..(newest + 1).saturating_sub(KEPT).max(2)) {
            let before = self.path(name, number - 1);
            if (*number > 2 && before.exists()) || fs::remove_file(self.path(name, *number)).is_err() {
                return;
            }
        }
        let start = format!(".{}.", file_name(name));
        let wanted = |file: &str| {
            let (number, random) = file.strip_prefix(&start)?.strip_suffix(".new")?.split_once('.')?;
            (!random.contains('.')).then(|| number.parse::<u64>().ok()).flatten()
        };
        // What wants a number that is taken can win nothing any more.
        for file in self.files().unwrap_or_default() {
            if wanted(&file).is_some_and(|number| number <= newest) {
                let _ = fs::remove_file(self.directory.join(file));
            }
        }
    }

    fn path(&self, name: &str, number: u64) -> PathBuf {
        self.directory.join(format!("{}.{number}.state", file_name(name)))
    }

    fn unreadable(&self, name: &str, number: u64) -> io::Error {
        let path = self.path(name, number);
        io::Error::new(
            ErrorKind::InvalidData,
            format!("{} should begin with '{MARK}{number}.' and a number, and does not", path.display()),
        )
    }

    fn cannot(&self, what: &str, name: &str, error: &io::Error) -> Error {
        let (kind, remedy) = match error.kind() {
            ErrorKind::InvalidData => (Kind::Config, "restore the file from a backup, or remove it if an older one shall count"),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                (Kind::Config, "give the user that runs urutau the right to write there")
            }
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists | ErrorKind::InvalidFilename => {
                (Kind::Config, "name a directory that exists or can be made")
            }
            _ => (Kind::Transient, "free space or mend the disk; it is tried again"),
        };
        let place = self.directory.display();
        Error::new(kind, "position-store", format!("cannot {what} the position '{name}' in {place}: {error}"), remedy)
    }
}

#[async_trait]
impl PositionStore for FileStore {
    async fn read(&self, name: &str) -> Result<Versioned<Option<String>>, Error> {
        let (store, name) = (self.clone(), name.to_string());
        beside(move || store.read_now(&name)).await.and_then(|read| read)
    }

    async fn replace(&self, name: &str, expected: &Token, text: &str) -> Replaced {
        let (store, name, expected, text) = (self.clone(), name.to_string(), expected.clone(), text.to_string());
        match beside(move || store.replace_now(&name, &expected, &text)).await {
            Ok(replaced) => replaced,
            Err(error) => Replaced::Unknown { why: error.to_string() },
        }
    }
}

/// Does blocking work on a thread of its own, whatever runtime the caller is on. It is done to its end even if nobody waits.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let (answer, answered) = futures::channel::oneshot::channel();
    let started = std::thread::Builder::new().name("position-store".into()).spawn(move || {
        let _ = answer.send(work()); // Nobody may be waiting any more.
    });
    let failed = |what| Error::new(Kind::Transient, "position-store", what, "it is tried again");
    started.map_err(|error| failed(format!("no thread can be started for the position store: {error}")))?;
    answered.await.map_err(|_| failed("the position store's thread ended without an answer".to_string()))
}

/// The token and the text of a file, if it is one of ours, whole.
fn parse(content: &str, number: u64) -> Option<(Token, &str)> {
    let (token, text) = content.strip_prefix(MARK)?.split_once('\n')?;
    let (claimed, random) = token.split_once('.')?;
    (claimed.parse() == Ok(number) && random.len() == 16).then(|| (Token::from(token), text))
}

/// A name as a file's: what could leave the directory, hide the file or mean something to a shell is escaped. Two names
/// never become one.
pub fn file_name(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => escaped.push(char::from(byte)),
            b'.' if at > 0 => escaped.push('.'),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// A number that no other process and no other call has: what the standard library seeds its hash maps with.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Makes a directory, and those above it that are missing, so that it is still there after a power cut: each new name is
/// synced into the directory that holds it.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|d| !d.as_os_str().is_empty() && !d.is_dir()).collect();
    fs::create_dir_all(directory)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_directory(parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
