//! Who may connect, and how: encryption, certificates, passwords, against a real server.

#[path = "../../../e2e/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "the harness of the end-to-end tests, of which this test needs a part")]
mod postgres;

use std::path::{Path, PathBuf};
use std::process::Command;

use contract::serde_json::{Value as Json, json};
use contract::{Error, Kind, Source};
use postgres::{Postgres, Release, write_for_server};
use postgres_source::PostgresSource;

/// Certificates: an authority, the server's and the client's by it, and a server's of its own.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn make() -> Certificates {
        let made = Certificates(tempfile::tempdir().unwrap());
        made.openssl("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=authority -keyout ca.key -out ca.pem");
        std::fs::write(made.path("names"), "subjectAltName=DNS:localhost").unwrap();
        for (name, subject) in [("server", "server"), ("client", "carol")] {
            made.openssl(&format!("req -newkey rsa:2048 -nodes -subj /CN={subject} -keyout {name}.key -out {name}.csr"));
            made.openssl(&format!(
                "x509 -req -days 30 -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out {name}.pem"
            ));
        }
        made.openssl("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=other -keyout other.key -out other.pem");
        made
    }

    fn openssl(&self, arguments: &str) {
        let made =
            Command::new("openssl").args(arguments.split(' ')).current_dir(self.0.path()).output().expect("openssl starts");
        assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

/// A server with users whose passwords are kept in several ways, which it asks for as `rules` say.
fn server(certificates: &Certificates, server_certificate: &str, rules: &str) -> Postgres {
    let mut server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE ROLE scram LOGIN PASSWORD 'pässword'; CREATE ROLE carol LOGIN PASSWORD 'pw'");
    server.sql("postgres", "SET password_encryption = md5; CREATE ROLE old LOGIN PASSWORD 'pw'");
    let data = server.data();
    let write = |name: &str, content: &str| write_for_server(&data.join(name), content, 0o600);
    write("server.pem", &certificates.text(&format!("{server_certificate}.pem")));
    write("server.key", &certificates.text(&format!("{server_certificate}.key")));
    write("ca.pem", &certificates.text("ca.pem"));
    write("pg_hba.conf", &format!("{rules}\nhost all postgres 127.0.0.1/32 trust\n"));
    server.sql("postgres", "ALTER SYSTEM SET ssl = on; ALTER SYSTEM SET ssl_cert_file = 'server.pem'; ALTER SYSTEM SET ssl_key_file = 'server.key'; ALTER SYSTEM SET ssl_ca_file = 'ca.pem'".replace("; ", ";\n").as_str());
    server.restart();
    server
}

/// Connects as a run would.
async fn connect(host: &str, server: &Postgres, user: &str, password: &str, ssl: Json) -> Result<(), Error> {
    let postgres = json!({
        "host": host, "port": server.port(), "database": "postgres", "username": user, "password": password, "ssl": ssl,
    });
    let Json::Object(settings) = json!({ "slotName": "s", "postgres": postgres }) else { unreachable!("settings are an object") };
    PostgresSource::new("connections", &settings)?.discover().await.map(|_| ())
}

#[track_caller]
fn refused(result: Result<(), Error>, code: &str, words: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, code), "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert!(!error.to_string().contains("pässword"), "{error}");
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_checked_as_far_as_the_mode_says() {
    let certificates = Certificates::make();
    let server = server(&certificates, "server", "hostssl all scram 127.0.0.1/32 scram-sha-256");
    let (ours, others) = (shown(&certificates.path("ca.pem")), shown(&certificates.path("other.pem")));
    let as_scram = async |host: &str, ssl: Json| connect(host, &server, "scram", "pässword", ssl).await;
    as_scram("127.0.0.1", json!({ "mode": "require" })).await.unwrap();
    as_scram("127.0.0.1", json!({ "mode": "verify-ca", "ca": ours })).await.unwrap();
    as_scram("localhost", json!({ "mode": "verify-full", "ca": ours })).await.unwrap();
    refused(as_scram("127.0.0.1", json!({ "mode": "verify-full", "ca": ours })).await, "postgres-tls", "TLS");
    refused(as_scram("localhost", json!({ "mode": "verify-ca", "ca": others })).await, "postgres-tls", "TLS");
    refused(as_scram("localhost", json!({ "mode": "verify-full", "ca": others })).await, "postgres-tls", "TLS");
    refused(as_scram("localhost", json!({ "mode": "disable" })).await, "postgres-login", "no encryption");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_an_authority_can_be_pinned() {
    let certificates = Certificates::make();
    let server = server(&certificates, "other", "hostssl all scram 127.0.0.1/32 scram-sha-256");
    let as_scram = async |ca: &str| {
        let ssl = json!({ "mode": "verify-ca", "ca": shown(&certificates.path(ca)) });
        connect("127.0.0.1", &server, "scram", "pässword", ssl).await
    };
    as_scram("other.pem").await.unwrap();
    refused(as_scram("ca.pem").await, "postgres-tls", "TLS");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_shows_its_certificate_where_the_server_wants_one() {
    let certificates = Certificates::make();
    let server = server(&certificates, "server", "hostssl all carol 127.0.0.1/32 scram-sha-256 clientcert=verify-full");
    let with = async |more: Json| {
        let mut ssl = json!({ "mode": "require" });
        ssl.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        connect("127.0.0.1", &server, "carol", "pw", ssl).await
    };
    let (cert, key) = (shown(&certificates.path("client.pem")), shown(&certificates.path("client.key")));
    with(json!({ "cert": cert, "key": key })).await.unwrap();
    refused(with(json!({})).await, "postgres-login", "certificate");
    refused(with(json!({ "cert": cert })).await, "postgres-tls", "one is missing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_goes_out_only_where_nobody_can_read_it() {
    let certificates = Certificates::make();
    let rules = "host all old 127.0.0.1/32 md5\nhost all carol 127.0.0.1/32 password\nhost all scram 127.0.0.1/32 scram-sha-256";
    let server = server(&certificates, "server", rules);
    let (plain, encrypted) = (|| json!({ "mode": "disable" }), || json!({ "mode": "require" }));
    let host = "127.0.0.1";
    connect(host, &server, "scram", "pässword", plain()).await.unwrap();
    connect(host, &server, "scram", "pässword", encrypted()).await.unwrap();
    connect(host, &server, "old", "pw", encrypted()).await.unwrap();
    connect(host, &server, "carol", "pw", encrypted()).await.unwrap();
    refused(connect(host, &server, "old", "pw", plain()).await, "postgres-login", "as MD5");
    refused(connect(host, &server, "carol", "pw", plain()).await, "postgres-login", "in clear text");
    refused(connect(host, &server, "scram", "wrong", encrypted()).await, "postgres-login", "28P01");
    refused(connect(host, &server, "nobody", "pw", encrypted()).await, "postgres-login", "28");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_encrypt_is_refused_where_it_must() {
    let certificates = Certificates::make();
    let server = Postgres::start(Release::Fifteen, &[]);
    for mode in ["require", "verify-ca", "verify-full"] {
        let ssl = json!({ "mode": mode, "ca": shown(&certificates.path("ca.pem")) });
        refused(connect("127.0.0.1", &server, "postgres", "", ssl).await, "postgres-tls", "does not encrypt");
    }
    connect("127.0.0.1", &server, "postgres", "", json!({ "mode": "disable" })).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_may_come() {
    let mut server = Postgres::start(Release::Fifteen, &[]);
    server.stop();
    let error = connect("127.0.0.1", &server, "postgres", "", json!({ "mode": "disable" })).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Transient, "postgres-unreachable"));
}
