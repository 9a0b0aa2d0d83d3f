//! The `source` section of a pipeline file, as far as it is this driver's. Names that are not known here are the validator's
//! business; a value that makes no sense is an error that names the field.

use std::path::PathBuf;

use contract::registry::Settings;
use contract::serde_json::Value as Json;
use contract::{Error, Kind};

use crate::wire::{Endpoint, Tls, TlsFiles, TlsMode};

/// All settings of a source.
#[derive(Clone)]
pub(crate) struct SourceSettings {
    pub(crate) endpoint: Endpoint,
    pub(crate) slot: String,
    pub(crate) publication: String,
    /// May slot and publication be made?
    pub(crate) create: bool,
    /// Of which only tables are discovered; empty is all.
    pub(crate) schemas: Vec<String>,
}

const PORT: u16 = 5432;

impl SourceSettings {
    pub(crate) fn read(pipeline: &str, settings: &Settings) -> Result<Self, Error> {
        let source = Section { path: "source", values: settings };
        let fields = source.section("postgres")?;
        let uri = source.text("uri")?.map(address).transpose()?.unwrap_or_default();
        let ssl = fields.as_ref().map(|fields| fields.section("ssl")).transpose()?.flatten();
        let of = |name: &str| fields.as_ref().map_or(Ok(None), |fields| fields.text(name));
        let of_ssl = |name: &str| ssl.as_ref().map_or(Ok(None), |ssl| ssl.text(name));
        let file = |name: &str, parameter: &str| {
            Ok::<_, Error>(of_ssl(name)?.map(str::to_owned).or_else(|| uri.parameter(parameter)).map(PathBuf::from))
        };
        let files = TlsFiles { ca: file("ca", "sslrootcert")?, cert: file("cert", "sslcert")?, key: file("key", "sslkey")? };
        // `sslmode` of an address counts where the file has no section of its own for it.
        let mode = match (ssl.is_some(), uri.parameter("sslmode")) {
            (false, Some(mode)) => tls_mode("source.uri: sslmode", &mode)?,
            _ => tls_mode("source.postgres.ssl.mode", of_ssl("mode")?.unwrap_or("disable"))?,
        };
        let required = |value: Option<String>, name: &str| {
            value.filter(|text| !text.is_empty()).ok_or_else(|| wrong(name, "a text that is not empty", "nothing"))
        };
        let port = match fields.as_ref().map(|fields| fields.number("port")).transpose()?.flatten() {
            // The validator fills the port in, also where the address says another.
            Some(port) if uri.host.is_none() => {
                u16::try_from(port).map_err(|_| wrong("source.postgres.port", "a port", "another number"))?
            }
            _ => uri.port.unwrap_or(PORT),
        };
        let user = required(uri.user.clone().or(of("username")?.map(str::to_owned)), "source.postgres.username")?;
        let endpoint = Endpoint {
            host: required(uri.host.clone().or(of("host")?.map(str::to_owned)), "source.uri")?,
            port,
            database: uri.database.clone().or(of("database")?.map(str::to_owned)).unwrap_or_else(|| user.clone()),
            password: uri.password.clone().or(of("password")?.map(str::to_owned)),
            user,
            tls: Tls::new(mode, &files).map_err(|e| e.into_error("TLS"))?,
            application: format!("urutau {pipeline}"),
            options: fields.as_ref().map_or(Ok(Vec::new()), |fields| fields.texts("params"))?,
        };
        if endpoint.host.starts_with('/') {
            return Err(wrong("source.uri", "a host's name or address", "the path of a socket, which is not built yet"));
        }
        let slot = required(source.text("slotName")?.map(str::to_owned), "source.slotName")?;
        Ok(Self {
            publication: source.text("publication")?.map_or_else(|| format!("{slot}_pub"), str::to_owned),
            create: source.boolean("create")?,
            schemas: fields.as_ref().map_or(Ok(Vec::new()), |fields| fields.names("schemas"))?,
            endpoint,
            slot,
        })
    }
}

fn tls_mode(name: &str, word: &str) -> Result<TlsMode, Error> {
    match word {
        "disable" => Ok(TlsMode::Disable),
        "require" => Ok(TlsMode::Require),
        "verify-ca" => Ok(TlsMode::VerifyCa),
        "verify-full" => Ok(TlsMode::VerifyFull),
        other => Err(wrong(name, "one of disable, require, verify-ca, verify-full", &format!("'{other}'"))),
    }
}

struct Section<'a> {
    path: &'static str,
    values: &'a Settings,
}

impl<'a> Section<'a> {
    fn value(&self, name: &str) -> Option<&'a Json> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    fn expected(&self, name: &str, what: &str) -> Error {
        wrong(&format!("{}.{name}", self.path), what, "something else")
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.expected(name, "a text")),
        }
    }

    fn boolean(&self, name: &str) -> Result<bool, Error> {
        match self.value(name) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(_) => Err(self.expected(name, "true or false")),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| self.expected(name, "a whole number")),
        }
    }

    fn section(&self, name: &'static str) -> Result<Option<Section<'a>>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Json::Object(values)) => Ok(Some(Section { path: name, values })),
            Some(_) => Err(self.expected(name, "a section")),
        }
    }

    fn names(&self, name: &str) -> Result<Vec<String>, Error> {
        let of = |value: &Json| value.as_str().map(str::to_owned).ok_or_else(|| self.expected(name, "a list of names"));
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Json::Array(values)) => values.iter().map(of).collect(),
            Some(_) => Err(self.expected(name, "a list of names")),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<(String, String)>, Error> {
        let Some(section) = self.section(name)? else { return Ok(Vec::new()) };
        let of = |(key, value): (&String, &Json)| {
            let text = value.as_str().ok_or_else(|| self.expected(name, "names and texts"))?;
            Ok((key.clone(), text.to_owned()))
        };
        section.values.iter().map(of).collect()
    }
}

/// The parts of `postgres://user:password@host:port/database?name=value`.
#[derive(Clone, Default)]
struct Address {
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    database: Option<String>,
    parameters: Vec<(String, String)>,
}

impl Address {
    fn parameter(&self, name: &str) -> Option<String> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    }
}

/// Parameters of an address that are understood.
const PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

fn address(text: &str) -> Result<Address, Error> {
    // The text may hold a password: no error repeats it.
    let malformed = |what: &str| wrong("source.uri", "postgres://user:password@host:port/database", what);
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| malformed("another beginning than postgres://"))?;
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    let (authority, database) = rest.split_once('/').map_or((rest, ""), |(authority, database)| (authority, database));
    let (login, server) = authority.rsplit_once('@').map_or(("", authority), |(login, server)| (login, server));
    let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(|| malformed("a host that begins with [ and has no ]"))?,
        None => server.split_at(server.find(':').unwrap_or(server.len())),
    };
    if host.contains(',') || port.contains(',') {
        return Err(malformed("several hosts, which is not built yet"));
    }
    let port = port.strip_prefix(':').map(|port| port.parse().map_err(|_| malformed("a port that is no number"))).transpose()?;
    let decoded = |text: &str, what: &str| decode(text).ok_or_else(|| malformed(&format!("{what} with a wrong % sequence")));
    let given = |text: &str, what: &str| if text.is_empty() { Ok(None) } else { decoded(text, what).map(Some) };
    let parameters = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !PARAMETERS.contains(&name) {
            return Err(malformed(&format!("the parameter '{name}'; {} are understood", PARAMETERS.join(", "))));
        }
        Ok((name.to_owned(), decoded(value, "a parameter")?))
    });
    Ok(Address {
        parameters: parameters.collect::<Result<_, _>>()?,
        user: given(user, "a user")?,
        password: password.map(|password| decoded(password, "a password")).transpose()?,
        host: given(host, "a host")?,
        port,
        database: given(database, "a database")?,
    })
}

/// Without its % sequences.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>()?;
        rest = after;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn wrong(name: &str, expected: &str, found: &str) -> Error {
    let what = format!("{name}: expected {expected}, found {found}");
    Error::new(Kind::Config, "postgres-setting", what, format!("correct '{name}' in the pipeline file"))
}

#[cfg(test)]
mod tests {
    use contract::serde_json::json;

    use super::*;

    fn read(settings: Json) -> Result<SourceSettings, Error> {
        match settings {
            Json::Object(settings) => SourceSettings::read("desk", &settings),
            _ => unreachable!("settings are an object"),
        }
    }

    #[test]
    fn an_address_says_everything() {
        let uri = "postgres://us%40er:p%3Ass@db.example:6543/shop?sslmode=require";
        let settings = read(json!({"uri": uri, "slotName": "desk"})).unwrap();
        let endpoint = settings.endpoint;
        assert_eq!((endpoint.host.as_str(), endpoint.port, endpoint.database.as_str()), ("db.example", 6543, "shop"));
        assert_eq!((endpoint.user.as_str(), endpoint.password.as_deref()), ("us@er", Some("p:ss")));
        assert!(endpoint.tls.is_some());
        assert_eq!((settings.slot.as_str(), settings.publication.as_str(), settings.create), ("desk", "desk_pub", false));
        assert_eq!(endpoint.application, "urutau desk");
    }

    #[test]
    fn fields_say_the_same_one_by_one() {
        let postgres = json!({
            "host": "::1", "port": 6000, "database": "shop", "username": "u", "password": "p",
            "params": {"search_path": "shop"}, "schemas": ["shop"],
        });
        let settings = read(json!({"postgres": postgres, "slotName": "s", "publication": "p", "create": true})).unwrap();
        let endpoint = settings.endpoint;
        assert_eq!((endpoint.host.as_str(), endpoint.port, endpoint.database.as_str()), ("::1", 6000, "shop"));
        assert_eq!((endpoint.user.as_str(), endpoint.password.as_deref()), ("u", Some("p")));
        assert_eq!(endpoint.options, [("search_path".to_owned(), "shop".to_owned())]);
        assert!(endpoint.tls.is_none() && settings.create);
        assert_eq!(settings.schemas, ["shop"]);
    }

    #[test]
    fn an_address_of_the_sixth_version_has_brackets_and_a_missing_database_is_the_users() {
        let settings = read(json!({"uri": "postgresql://me@[::1]:5555", "slotName": "s"})).unwrap();
        let endpoint = settings.endpoint;
        assert_eq!((endpoint.host.as_str(), endpoint.port, endpoint.database.as_str()), ("::1", 5555, "me"));
        assert_eq!(endpoint.password, None);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_is_repeated() {
        for (settings, said) in [
            (json!({"slotName": "s"}), "source.postgres.username: expected a text that is not empty, found nothing"),
            (json!({"uri": "postgres://u@h/d"}), "source.slotName: expected a text that is not empty, found nothing"),
            (json!({"uri": "mysql://u:secret@h/d", "slotName": "s"}), "found another beginning than postgres://"),
            (json!({"uri": "postgres://u:secret@h:port/d", "slotName": "s"}), "found a port that is no number"),
            (json!({"uri": "postgres://u:sec%zzret@h/d", "slotName": "s"}), "found a password with a wrong % sequence"),
            (json!({"uri": "postgres://u:secret@h,i/d", "slotName": "s"}), "found several hosts, which is not built yet"),
            (json!({"uri": "postgres://u:secret@h/d?sslmod=require", "slotName": "s"}), "found the parameter 'sslmod'"),
            (json!({"uri": "postgres://u:secret@h/d?sslmode=prefer", "slotName": "s"}), "found 'prefer'"),
            (
                json!({"uri": "postgres://u:secret@h/d?sslmode=verify-full", "slotName": "s"}),
                "needs the certificate of an authority",
            ),
        ] {
            let error = read(settings).err().unwrap();
            assert_eq!(error.kind, Kind::Config);
            assert!(error.what.contains(said), "{error}");
            assert!(!error.to_string().contains("sec"), "{error}");
        }
    }
}
