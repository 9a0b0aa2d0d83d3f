//! Who we are: the server asks, we answer, and it must prove that it knows the password too where SCRAM lets it.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::error::WireError;

/// What the server asks for in an Authentication message.
enum Asked<'a> {
    Nothing,
    Cleartext,
    Md5 { salt: [u8; 4] },
    Sasl { mechanisms: Vec<&'a str> },
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    Other(u32),
}

fn asked(body: &[u8]) -> Result<Asked<'_>, WireError> {
    let short = || WireError::Protocol("an authentication message ends too early".into());
    let (kind, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
    Ok(match u32::from_be_bytes(*kind) {
        0 => Asked::Nothing,
        3 => Asked::Cleartext,
        5 => Asked::Md5 { salt: rest.try_into().map_err(|_| short())? },
        10 => {
            let names = rest.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
            Asked::Sasl { mechanisms: names.filter(|name| !name.is_empty()).collect() }
        }
        11 => Asked::SaslContinue(rest),
        12 => Asked::SaslFinal(rest),
        other => Asked::Other(other),
    })
}

/// Answers until the server is content. What it said meanwhile is read, the messages behind are not.
pub(super) async fn authenticate(connection: &mut Connection, user: &str, password: Option<&str>) -> Result<(), WireError> {
    let needed = || password.ok_or_else(|| refused("the server wants a password, and none is given".into(), PASSWORD));
    let mut scram: Option<ScramSha256> = None;
    let mut proven = false;
    loop {
        let message = connection.receive().await?;
        if message.kind != b'R' {
            return Err(WireError::Protocol(format!("'{}' came in place of a question who we are", char::from(message.kind))));
        }
        let mut answer = BytesMut::new();
        match asked(&message.body)? {
            Asked::Nothing if scram.is_some() && !proven => {
                return Err(refused("the server ended SCRAM without proving that it knows the password".into(), IMPOSTOR));
            }
            Asked::Nothing => return Ok(()),
            Asked::Cleartext => {
                only_encrypted(connection, "in clear text")?;
                encoded(frontend::password_message(needed()?.as_bytes(), &mut answer))?;
            }
            Asked::Md5 { salt } => {
                only_encrypted(connection, "as MD5")?;
                let hash = md5_hash(user.as_bytes(), needed()?.as_bytes(), salt);
                encoded(frontend::password_message(hash.as_bytes(), &mut answer))?;
            }
            Asked::Sasl { mechanisms } => {
                let (mechanism, binding) = mechanism(connection, &mechanisms)?;
                let begun = ScramSha256::new(needed()?.as_bytes(), binding);
                encoded(frontend::sasl_initial_response(mechanism, begun.message(), &mut answer))?;
                scram = Some(begun);
            }
            Asked::SaslContinue(said) => {
                let scram = scram.as_mut().ok_or_else(|| WireError::Protocol("SCRAM goes on before it began".into()))?;
                scram.update(said).map_err(|e| refused(format!("SCRAM: {e}"), PASSWORD))?;
                encoded(frontend::sasl_response(scram.message(), &mut answer))?;
            }
            Asked::SaslFinal(said) => {
                let scram = scram.as_mut().ok_or_else(|| WireError::Protocol("SCRAM ends before it began".into()))?;
                scram.finish(said).map_err(|e| refused(format!("SCRAM: {e}"), IMPOSTOR))?;
                proven = true;
                continue;
            }
            Asked::Other(kind) => {
                let what = format!("the server wants to know who we are in a way that is not supported (number {kind})");
                return Err(refused(what, "allow scram-sha-256 for this user in the server's pg_hba.conf"));
            }
        }
        connection.send(&answer).await?;
    }
}

/// With channel binding wherever there is a channel and the server knows how; without, the server is told whether we would have
/// known, so that nobody in between can hide its offer.
fn mechanism(connection: &Connection, offered: &[&str]) -> Result<(&'static str, ChannelBinding), WireError> {
    match connection.end_point() {
        Some(hash) if offered.contains(&SCRAM_SHA_256_PLUS) => {
            Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash)))
        }
        Some(_) if offered.contains(&SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
        None if offered.contains(&SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
        _ => Err(refused(
            format!("the server offers only {}", offered.join(", ")),
            "allow scram-sha-256 for this user in the server's pg_hba.conf",
        )),
    }
}

fn only_encrypted(connection: &Connection, how: &str) -> Result<(), WireError> {
    if connection.is_encrypted() {
        return Ok(());
    }
    let what = format!("the server wants the password {how}, over a connection that is not encrypted");
    Err(refused(what, "encrypt it ('source.postgres.ssl.mode'), or allow scram-sha-256 in the server's pg_hba.conf"))
}

const PASSWORD: &str = "correct the password: 'source.uri', or 'source.postgres.password'";
const IMPOSTOR: &str = "is this the right server? It could not prove that it knows the password";

fn refused(what: String, remedy: &'static str) -> WireError {
    WireError::Refused { code: "postgres-login", what, remedy }
}

fn encoded(result: std::io::Result<()>) -> Result<(), WireError> {
    result.map_err(|e| WireError::Protocol(e.to_string()))
}
