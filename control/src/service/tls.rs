//! Mutual TLS between hosts, with `--tls-dir`: a folder with `ca.pem`, and this host's `cert.pem` and `key.pem`.

use std::path::Path;

use tonic::transport::Endpoint;

use oflow_base::Result;

/// How an address of the root begins.
pub(super) fn scheme(folder: Option<&Path>) -> &'static str {
    if folder.is_some() { "https" } else { "http" }
}

/// Why two hosts will never come together, and the way out.
pub(super) struct Mismatch {
    pub(super) message: String,
    pub(super) help: &'static str,
}

#[cfg(feature = "tls")]
mod with {
    use super::*;
    use crate::service::admitted::Admitted;
    use oflow_base::Error;
    use rustls::CertificateError as Wrong;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::server::WebPkiClientVerifier;
    use rustls::{RootCertStore, ServerConfig};
    use std::fmt::Display;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::net::TcpStream;
    use tonic::transport::{Certificate, ClientTlsConfig, Identity};

    /// Time-out of a TLS handshake.
    const HANDSHAKE: Duration = Duration::from_secs(10);

    /// Longest file that is read.
    const MOST: u64 = 1 << 20;
    const TOGETHER: &str = "all hosts of a job need certificates of one authority, valid now, in their --tls-dir";

    fn read(folder: &Path, name: &str) -> Result<Vec<u8>> {
        let path = folder.join(name);
        oflow_files::bytes(&path, MOST)
            .map_err(|e| e.help("--tls-dir names a folder with ca.pem, cert.pem and key.pem"))
    }

    /// The private key, which must be this user's or root's, and nobody else's to read.
    fn read_key(folder: &Path) -> Result<Vec<u8>> {
        let key = read(folder, "key.pem")?;
        let path = folder.join("key.pem");
        let failed = |what: String| Error::argument(format!("the private key {} {what}", path.display()));
        let meta =
            std::fs::metadata(&path).map_err(|e| Error::io(format!("cannot read {}", path.display())).because(e))?;
        if meta.mode() & 0o007 != 0 {
            return Err(failed("can be used by every user".into()).help(format!("`chmod 600 {}`", path.display())));
        }
        match crate::token::foreign_owner(meta.uid()) {
            Some(owner) => Err(failed(format!("belongs to {owner}")).help("use a key that only this host's user has")),
            None => Ok(key),
        }
    }

    fn files(folder: &Path) -> Result<(Certificate, Identity)> {
        let authority = Certificate::from_pem(read(folder, "ca.pem")?);
        Ok((authority, Identity::from_pem(read(folder, "cert.pem")?, read_key(folder)?)))
    }

    fn unusable(folder: &Path, why: impl Display) -> Error {
        Error::io(format!("the certificates in {} cannot be used", folder.display()))
            .because(why.to_string())
            .help("ca.pem and cert.pem hold certificates, key.pem the private key of the first in cert.pem, all as PEM")
    }

    /// Node 0's end of TLS. The handshake is made here and not by tonic, which tells nobody why one has failed.
    pub struct Acceptor(tokio_rustls::TlsAcceptor);

    impl Acceptor {
        /// Makes the handshake of a connection. The error is a part of a sentence for the user.
        pub(in super::super) async fn accept(&self, stream: TcpStream) -> std::result::Result<Admitted, String> {
            match tokio::time::timeout(HANDSHAKE, self.0.accept(stream)).await {
                Ok(Ok(stream)) => Ok(Admitted(Box::new(stream))),
                Ok(Err(e)) => Err(match cause(&e) {
                    Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
                        Wrong::Expired | Wrong::ExpiredContext { .. } => "its certificate has expired".into(),
                        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
                            "its certificate is not valid yet, by the clock of this host".into()
                        }
                        Wrong::UnknownIssuer | Wrong::BadSignature => {
                            "its certificate is not of the authority in ca.pem".into()
                        }
                        other => format!("its certificate is not accepted: {other}"),
                    },
                    Some(rustls::Error::AlertReceived(alert)) => {
                        format!("it does not accept this host's certificate: TLS alert {alert:?}")
                    }
                    Some(other) => other.to_string(),
                    None => e.to_string(),
                }),
                Err(_) => Err(format!("the handshake took more than {} s", HANDSHAKE.as_secs())),
            }
        }
    }

    pub(in super::super) fn acceptor(folder: Option<&Path>) -> Result<Option<Acceptor>> {
        let Some(folder) = folder else { return Ok(None) };
        let (authority, own, key) = (read(folder, "ca.pem")?, read(folder, "cert.pem")?, read_key(folder)?);
        let config = config(&authority, &own, &key).map_err(|why| unusable(folder, why))?;
        Ok(Some(Acceptor(Arc::new(config).into())))
    }

    fn config(authority: &[u8], own: &[u8], key: &[u8]) -> std::result::Result<ServerConfig, String> {
        let text = |e: &dyn Display| e.to_string();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            roots.add(certificate.map_err(|e| text(&e))?).map_err(|e| text(&e))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
        let chain = CertificateDer::pem_slice_iter(own).collect::<std::result::Result<Vec<_>, _>>();
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| text(&e))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| text(&e))?
            .with_client_cert_verifier(verifier.build().map_err(|e| text(&e))?)
            .with_single_cert(chain.map_err(|e| text(&e))?, key)
            .map_err(|e| text(&e))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(config)
    }

    pub(in super::super) fn client(endpoint: Endpoint, folder: Option<&Path>) -> Result<Endpoint> {
        let Some(folder) = folder else { return Ok(endpoint) };
        let (authority, identity) = files(folder)?;
        let config = ClientTlsConfig::new().identity(identity).ca_certificate(authority);
        endpoint.tls_config(config).map_err(|e| unusable(folder, crate::handshake::innermost(&e)))
    }

    /// The error of a failed connection to node 0, if TLS is the cause.
    pub(in super::super) fn mismatch(error: &(dyn std::error::Error + 'static), host: &str) -> Option<Mismatch> {
        let (message, help) = match cause(error) {
            Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
                Wrong::Expired | Wrong::ExpiredContext { .. } => ("node 0's certificate has expired".into(), TOGETHER),
                Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
                    ("node 0's certificate is not valid yet, by the clock of this host".into(), TOGETHER)
                }
                Wrong::UnknownIssuer | Wrong::BadSignature => {
                    ("node 0's certificate is not of the authority in ca.pem".into(), TOGETHER)
                }
                Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => (
                    format!("node 0's certificate is for another name than {host}"),
                    "--rdzv must name node 0 as its certificate does (subject alternative names)",
                ),
                other => (format!("node 0's certificate is not accepted: {other}"), TOGETHER),
            },
            Some(rustls::Error::InvalidMessage(_)) => {
                ("node 0 does not speak TLS".into(), "start it with --tls-dir, or this host without")
            }
            Some(rustls::Error::AlertReceived(alert)) => (refused(&format!("{alert:?}")), TOGETHER),
            Some(other) => (format!("TLS with node 0 fails: {other}"), TOGETHER),
            // Node 0 looks at this host's certificate when the connection is there already; then HTTP/2 has the alert, as text.
            None => (refused(alert(&format!("{error:?}"))?), TOGETHER),
        };
        Some(Mismatch { message, help })
    }

    fn refused(alert: &str) -> String {
        match alert {
            // TLS has one alert for both.
            "CertificateExpired" => {
                "node 0 says that this host's certificate has expired, or is not valid yet by its clock".into()
            }
            "UnknownCA" => "node 0 does not know the authority of this host's certificate".into(),
            other => format!("node 0 refuses this host's certificate: TLS alert {other}"),
        }
    }

    /// The name of the TLS alert in a text.
    fn alert(text: &str) -> Option<&str> {
        let (_, after) = text.split_once("received fatal alert: ")?;
        after.split(|c: char| !c.is_alphanumeric()).next()
    }

    /// The error of TLS at the bottom of another one.
    fn cause<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
        loop {
            if let Some(found) = error.downcast_ref::<rustls::Error>() {
                return Some(found);
            }
            // An error of I/O does not tell the one that it was made from as its source.
            let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            error = match inner {
                Some(inner) => inner,
                None => error.source()?,
            };
        }
    }
}

/// The error of an oflow built without TLS.
#[cfg(any(test, not(feature = "tls")))]
fn not_built_in() -> oflow_base::Error {
    oflow_base::Error::unsupported("this oflaunch was built without TLS, so it cannot use --tls-dir")
        .help("build it with the cargo feature `tls`, which is on by default: `cargo build --release -p oflaunch`")
}

#[cfg(not(feature = "tls"))]
mod with {
    use super::*;

    /// There is none.
    pub enum Acceptor {}

    impl Acceptor {
        pub(in super::super) async fn accept(
            &self,
            _: tokio::net::TcpStream,
        ) -> std::result::Result<crate::service::admitted::Admitted, String> {
            match *self {}
        }
    }

    pub(in super::super) fn acceptor(folder: Option<&Path>) -> Result<Option<Acceptor>> {
        folder.map_or(Ok(None), |_| Err(not_built_in()))
    }

    pub(in super::super) fn client(endpoint: Endpoint, folder: Option<&Path>) -> Result<Endpoint> {
        folder.map_or(Ok(endpoint), |_| Err(not_built_in()))
    }

    pub(in super::super) fn mismatch(_: &(dyn std::error::Error + 'static), _: &str) -> Option<Mismatch> {
        None
    }
}

pub(super) use with::{Acceptor, acceptor, client, mismatch};

#[cfg(test)]
mod tests {
    #[test]
    fn a_build_without_tls_says_how_to_have_it() {
        assert_eq!(
            super::not_built_in().to_string(),
            "this oflaunch was built without TLS, so it cannot use --tls-dir\n  help: build it with the cargo feature `tls`, which is on by default: `cargo build --release -p oflaunch`"
        );
    }
}
