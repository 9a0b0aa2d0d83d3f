//! TLS: how much the server must prove, and what binds a password to this very connection.

use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::error::WireError;

/// How much encryption, and what the server must prove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TlsMode {
    /// None.
    Disable,
    /// Encrypted, whoever answers.
    Require,
    /// By a certificate of the authority.
    VerifyCa,
    /// By a certificate of the authority for this host.
    VerifyFull,
}

/// Files in PEM.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TlsFiles {
    /// The authority's certificates, or the server's own.
    pub(crate) ca: Option<PathBuf>,
    /// The client's certificate.
    pub(crate) cert: Option<PathBuf>,
    /// The client's key.
    pub(crate) key: Option<PathBuf>,
}

/// What a connection is encrypted with.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// `None` without encryption.
    pub(crate) fn new(mode: TlsMode, files: &TlsFiles) -> Result<Option<Self>, WireError> {
        if mode == TlsMode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        let trusted = match (&files.ca, mode) {
            (_, TlsMode::Disable | TlsMode::Require) => Vec::new(),
            (Some(path), _) => certificates(path)?,
            (None, _) => {
                return Err(refused(format!("{} needs the certificate of an authority, none is named", word(mode)), TRUST));
            }
        };
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots
                .add(certificate.clone())
                .map_err(|e| refused(format!("a certificate of 'ssl.ca' can't be used: {e}"), TRUST))?;
        }
        let verifier = Verifier { mode, roots, trusted, algorithms: provider.signature_verification_algorithms };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| refused(e.to_string(), ""))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&files.cert, &files.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let private = PrivateKeyDer::from_pem_file(key)
                    .map_err(|e| refused(format!("the client's key '{}' can't be read: {e}", key.display()), CLIENT))?;
                config
                    .with_client_auth_cert(certificates(cert)?, private)
                    .map_err(|e| refused(format!("the client's certificate can't be used: {e}"), CLIENT))?
            }
            _ => return Err(refused("of the client's certificate and key one is missing".into(), CLIENT)),
        };
        Ok(Some(Self(Arc::new(config))))
    }

    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, WireError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| refused(format!("'{host}' is no name that a certificate can be for"), "correct the host's name"))?;
        TlsConnector::from(self.0.clone()).connect(name, stream).await.map_err(|error| match error.get_ref() {
            // What the certificate proves does not change by trying again.
            Some(inner) if inner.is::<rustls::Error>() => refused(format!("TLS: {inner}"), TRUST),
            _ => WireError::Io { doing: "TLS", error },
        })
    }
}

const TRUST: &str =
    "name the authority's certificate (or the server's own) in 'source.postgres.ssl.ca', and the host as the certificate does";
const CLIENT: &str = "name both, in PEM: 'source.postgres.ssl.cert' and 'source.postgres.ssl.key'";

fn word(mode: TlsMode) -> &'static str {
    match mode {
        TlsMode::Disable => "disable",
        TlsMode::Require => "require",
        TlsMode::VerifyCa => "verify-ca",
        TlsMode::VerifyFull => "verify-full",
    }
}

fn refused(what: String, remedy: &'static str) -> WireError {
    WireError::Refused { code: "postgres-tls", what, remedy }
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, WireError> {
    let unreadable =
        |e: &dyn std::fmt::Display| refused(format!("certificates in '{}' can't be read: {e}", path.display()), TRUST);
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| unreadable(&e))?.collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unreadable(&"there is none in it")),
        Err(error) => Err(unreadable(&error)),
    }
}

/// What a server's certificate must be.
#[derive(Debug)]
struct Verifier {
    mode: TlsMode,
    roots: RootCertStore,
    /// A server that shows one of these itself is the right one: small installations have no authority.
    trusted: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if matches!(self.mode, TlsMode::VerifyCa | TlsMode::VerifyFull) {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            if !self.trusted.contains(end_entity) {
                verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, self.algorithms.all)?;
            }
            if self.mode == TlsMode::VerifyFull {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// What SCRAM is bound to: the hash of the server's certificate, by its own algorithm, but SHA-256 in place of MD5 and SHA-1
/// (RFC 5929, section 4.1). `None` if the algorithm has no hash that is known here.
pub(super) fn end_point(stream: &TlsStream<TcpStream>) -> Option<Vec<u8>> {
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    Some(match signature_hash(certificate)? {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// The hash of a certificate's signature: Certificate ::= SEQUENCE { tbs SEQUENCE, algorithm SEQUENCE { OID ... } ... }.
fn signature_hash(certificate: &[u8]) -> Option<Hash> {
    let (inside, _) = element(certificate, 0x30)?;
    let (_tbs, rest) = element(inside, 0x30)?;
    let (algorithm, _) = element(rest, 0x30)?;
    let (oid, _) = element(algorithm, 0x06)?;
    match oid {
        // RSA with MD5, SHA-1, SHA-256; ECDSA with SHA-1, SHA-256
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 4 | 5 | 11] | [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 1] => Some(Hash::Sha256),
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2] => Some(Hash::Sha256),
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 12] | [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 3] => Some(Hash::Sha384),
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 13] | [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 4] => Some(Hash::Sha512),
        _ => None,
    }
}

/// The first element of some DER, if it has this tag: its content, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first().filter(|(found, _)| **found == tag).map(|(found, rest)| (*found, rest))?;
    debug_assert_eq!(found, tag);
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
