//! Mutual TLS between hosts, where `--tls-dir` asks for it: a folder with `ca.pem`, and this host's `cert.pem` and `key.pem`.

use std::path::Path;

use tonic::transport::{Endpoint, Server};

use crate::error::Result;

/// How an address of the root begins.
pub(super) fn scheme(folder: Option<&Path>) -> &'static str {
    if folder.is_some() { "https" } else { "http" }
}

#[cfg(feature = "tls")]
mod with {
    use super::*;
    use crate::error::Error;
    use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

    fn read(folder: &Path, name: &str) -> Result<Vec<u8>> {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|e| {
            Error::io(format!("cannot read {}", path.display()))
                .because(e)
                .help("--tls-dir names a folder with ca.pem, cert.pem and key.pem")
        })
    }

    fn files(folder: &Path) -> Result<(Certificate, Identity)> {
        let identity = Identity::from_pem(read(folder, "cert.pem")?, read(folder, "key.pem")?);
        Ok((Certificate::from_pem(read(folder, "ca.pem")?), identity))
    }

    fn unusable(folder: &Path, e: tonic::transport::Error) -> Error {
        Error::io(format!("the certificates in {} cannot be used", folder.display())).because(e)
    }

    pub(in super::super) fn server(server: Server, folder: Option<&Path>) -> Result<Server> {
        let Some(folder) = folder else { return Ok(server) };
        let (authority, identity) = files(folder)?;
        let config = ServerTlsConfig::new().identity(identity).client_ca_root(authority);
        server.tls_config(config).map_err(|e| unusable(folder, e))
    }

    pub(in super::super) fn client(endpoint: Endpoint, folder: Option<&Path>) -> Result<Endpoint> {
        let Some(folder) = folder else { return Ok(endpoint) };
        let (authority, identity) = files(folder)?;
        let config = ClientTlsConfig::new().identity(identity).ca_certificate(authority);
        endpoint.tls_config(config).map_err(|e| unusable(folder, e))
    }
}

#[cfg(not(feature = "tls"))]
mod with {
    use super::*;
    use crate::error::Error;

    fn missing<T>(folder: Option<&Path>, value: T) -> Result<T> {
        match folder {
            None => Ok(value),
            Some(_) => {
                Err(Error::unsupported("this oflaunch was built without TLS").help("build it with --features tls"))
            }
        }
    }

    pub(in super::super) fn server(server: Server, folder: Option<&Path>) -> Result<Server> {
        missing(folder, server)
    }

    pub(in super::super) fn client(endpoint: Endpoint, folder: Option<&Path>) -> Result<Endpoint> {
        missing(folder, endpoint)
    }
}

pub(super) use with::{client, server};
