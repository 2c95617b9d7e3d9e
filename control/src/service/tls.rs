//! Mutual TLS between hosts, with `--tls-dir`: a folder with `ca.pem`, and this host's `cert.pem` and `key.pem`.

use std::path::Path;

use tonic::transport::{Endpoint, Server};

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
    use oflow_base::Error;
    use rustls::CertificateError as Wrong;
    use std::os::unix::fs::MetadataExt;
    use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

    const TOGETHER: &str = "all hosts of a job need certificates of one authority, valid now, in their --tls-dir";

    fn read(folder: &Path, name: &str) -> Result<Vec<u8>> {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|e| {
            Error::io(format!("cannot read {}", path.display()))
                .because(e)
                .help("--tls-dir names a folder with ca.pem, cert.pem and key.pem")
        })
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

    fn unusable(folder: &Path, e: &tonic::transport::Error) -> Error {
        Error::io(format!("the certificates in {} cannot be used", folder.display()))
            .because(super::super::link::innermost(e))
            .help("ca.pem and cert.pem hold certificates, key.pem the private key of the first in cert.pem, all as PEM")
    }

    pub(in super::super) fn server(server: Server, folder: Option<&Path>) -> Result<Server> {
        let Some(folder) = folder else { return Ok(server) };
        let (authority, identity) = files(folder)?;
        let config = ServerTlsConfig::new().identity(identity).client_ca_root(authority);
        server.tls_config(config).map_err(|e| unusable(folder, &e))
    }

    pub(in super::super) fn client(endpoint: Endpoint, folder: Option<&Path>) -> Result<Endpoint> {
        let Some(folder) = folder else { return Ok(endpoint) };
        let (authority, identity) = files(folder)?;
        let config = ClientTlsConfig::new().identity(identity).ca_certificate(authority);
        endpoint.tls_config(config).map_err(|e| unusable(folder, &e))
    }

    /// The error of a failed connection to node 0, if TLS is the cause.
    pub(in super::super) fn mismatch(error: &(dyn std::error::Error + 'static), host: &str) -> Option<Mismatch> {
        let (message, help) = match cause(error) {
            Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
                Wrong::Expired
                | Wrong::ExpiredContext { .. }
                | Wrong::NotValidYet
                | Wrong::NotValidYetContext { .. } => {
                    ("node 0's certificate has expired, or is not valid yet".into(), TOGETHER)
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
            "CertificateExpired" => "node 0 says that this host's certificate has expired".into(),
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

    pub(in super::super) fn server(server: Server, folder: Option<&Path>) -> Result<Server> {
        folder.map_or(Ok(server), |_| Err(not_built_in()))
    }

    pub(in super::super) fn client(endpoint: Endpoint, folder: Option<&Path>) -> Result<Endpoint> {
        folder.map_or(Ok(endpoint), |_| Err(not_built_in()))
    }

    pub(in super::super) fn mismatch(_: &(dyn std::error::Error + 'static), _: &str) -> Option<Mismatch> {
        None
    }
}

pub(super) use with::{client, mismatch, server};

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
