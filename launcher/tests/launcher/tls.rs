//! TLS between hosts (`--tls-dir`), with certificates made here: a job runs, and whoever is not of it is told why, at once.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::hosts::free_port;
use crate::common::tap::Tap;
use crate::common::*;
use oflow::control::handshake::Connector;
use oflow_faults::Setup;
use oflow_faults::job::{self, Order};
use oflow_proto::control as pb;
use oflow_proto::control::nodes_client::NodesClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustix::process::Signal;
use tonic::codegen::tokio_stream;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The files of a host: a certificate for `names`, valid now or for a year from then on.
    fn files(&self, folder: &Folder, name: &str, names: &[&str], year: Option<i32>) -> PathBuf {
        let dir = folder.path().join(name);
        fs::create_dir_all(&dir).unwrap();
        let mut params = CertificateParams::new(names.iter().map(|n| n.to_string()).collect::<Vec<_>>()).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if let Some(year) = year {
            (params.not_before, params.not_after) = (date_time_ymd(year, 1, 1), date_time_ymd(year + 1, 1, 1));
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        fs::write(dir.join("ca.pem"), self.0.pem()).unwrap();
        fs::write(dir.join("cert.pem"), certificate.pem()).unwrap();
        fs::write(dir.join("key.pem"), key.serialize_pem()).unwrap();
        fs::set_permissions(dir.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
        dir
    }

    fn host(&self, folder: &Folder, name: &str) -> PathBuf {
        self.files(folder, name, &["localhost", "127.0.0.1"], None)
    }
}

/// One of two hosts, with these files or without TLS.
fn host(folder: &Folder, node: usize, rdzv: &str, tls: Option<&PathBuf>) -> Command {
    let mut command = oflaunch(folder);
    command.args(["--nnodes", "2", "--node-rank", &node.to_string(), "--rdzv", rdzv, "-n", "1", "--threads", "1"]);
    if let Some(dir) = tls {
        command.arg("--tls-dir").arg(dir);
    }
    command.arg("./tell").env("OFLOW_TOKEN", TOKEN);
    command
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.sh("tell", "echo \"$RANK of $WORLD_SIZE\"");
    folder
}

/// What host 1 says and ends with, while host 0 waits for it with those files (or without TLS).
fn refused(folder: &Folder, zero: Option<&PathBuf>, one: Option<&PathBuf>) -> String {
    let rdzv = format!("127.0.0.1:{}", free_port());
    let mut root = Running::of(&mut host(folder, 0, &rdzv, zero));
    wait_for("node 0 to listen", LONG, || TcpStream::connect(&rdzv).ok());
    let (status, text) = Running::of(&mut host(folder, 1, &rdzv, one)).finish();
    assert_eq!(status.code(), Some(1), "{text}");
    if zero.is_some() && one.is_some() {
        // Host 1 may know it first.
        root.said(" with the job token: refused in the TLS handshake; the last was from 127.0.0.1: ");
    }
    // It waits for another host 1: this one is none.
    root.signal(Signal::TERM);
    root.finish();
    text.lines().filter_map(|l| l.strip_prefix("oflaunch: ").or(l.strip_prefix("  "))).collect::<Vec<_>>().join("\n")
}

#[test]
fn hosts_speak_tls_and_the_token_is_not_to_be_read() {
    let folder = folder();
    let authority = Authority::new("the job's");
    let dirs = [authority.host(&folder, "a"), authority.host(&folder, "b")];
    for tls in [true, false] {
        let rdzv = format!("127.0.0.1:{}", free_port());
        let tap = Tap::before(&rdzv);
        let way = [rdzv, tap.address.to_string()];
        let hosts = [0, 1].map(|n| Running::of(&mut host(&folder, n, &way[n], tls.then_some(&dirs[n]))));
        let mut lines: Vec<String> = vec![];
        for running in hosts {
            let (status, out, err) = running.finish_all();
            assert_eq!((status.code(), err.as_str()), (Some(0), ""));
            lines.extend(out.lines().map(|l| l.split_once("] ").unwrap().1.to_string()));
        }
        lines.sort();
        assert_eq!(lines, ["0 of 2", "1 of 2"]);
        let said = [tap.said(), tap.answered()].concat();
        // Node 0 may have spoken first, and headers, the token among them, are packed.
        let has = |text: &[u8]| said.windows(text.len()).any(|w| w == text);
        let clear = has(TOKEN.as_bytes()) || has(b"PRI * HTTP/2.0");
        assert!(said.len() > 300 && clear != tls, "{} bytes, TLS: {tls}", said.len());
    }
}

#[test]
fn a_program_trains_on_two_hosts_that_speak_tls() {
    let folder = folder();
    let dir = Authority::new("the job's").host(&folder, "both");
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tls");
    fs::create_dir_all(&work).unwrap();
    let setup = Setup { oflaunch: PathBuf::from(env!("CARGO_BIN_EXE_oflaunch")), work };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/train.rs");
    let order = Order {
        ranks: vec![1, 1],
        options: vec!["--tls-dir".into(), dir.display().to_string()],
        program: job::build(&setup, &program).unwrap(),
        args: ["--steps", "5"].map(String::from).into(),
    };
    let mut job = setup.start("train", &order).unwrap();
    assert!(job.wait(5 * LONG).unwrap(), "{:?}", job.processes());
    for host in 0..2 {
        assert_eq!(job.code(host), Some(0), "host {host}: {}", job.stderr(host));
    }
    assert_eq!(job.leftovers(), Vec::<String>::new());
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let folder = folder();
    let (ours, others) = (Authority::new("the job's"), Authority::new("another"));
    let (good, foreign) = (ours.host(&folder, "good"), others.host(&folder, "foreign"));
    let text = refused(&folder, Some(&good), Some(&foreign));
    assert!(text.contains("node 0's certificate is not of the authority in ca.pem"), "{text}");
    // It trusts node 0, but node 0 not it.
    fs::copy(good.join("ca.pem"), foreign.join("ca.pem")).unwrap();
    let text = refused(&folder, Some(&good), Some(&foreign));
    assert!(text.contains("node 0 does not know the authority of this host's certificate"), "{text}");
}

#[test]
fn expired_and_early_certificates_are_refused() {
    let folder = folder();
    let authority = Authority::new("the job's");
    let good = authority.host(&folder, "good");
    let expired = authority.files(&folder, "expired", &["127.0.0.1"], Some(2001));
    let text = refused(&folder, Some(&expired), Some(&good));
    assert!(text.contains("node 0's certificate has expired\n"), "{text}");
    let early = authority.files(&folder, "early", &["127.0.0.1"], Some(2901));
    let text = refused(&folder, Some(&early), Some(&good));
    assert!(text.contains("node 0's certificate is not valid yet, by the clock of this host"), "{text}");
    let text = refused(&folder, Some(&good), Some(&expired));
    assert!(text.contains("node 0 says that this host's certificate has expired"), "{text}");
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let folder = folder();
    let authority = Authority::new("the job's");
    let elsewhere = authority.files(&folder, "elsewhere", &["node0.example"], None);
    let text = refused(&folder, Some(&elsewhere), Some(&authority.host(&folder, "good")));
    assert!(text.contains("node 0's certificate is for another name than 127.0.0.1"), "{text}");
    assert!(text.contains("--rdzv"), "{text}");
}

#[test]
fn a_host_without_tls_is_told_that_node_0_has_it_and_the_other_way_round() {
    let folder = folder();
    let dir = Authority::new("the job's").host(&folder, "good");
    let text = refused(&folder, Some(&dir), None);
    assert!(text.contains("node 0 speaks TLS with other hosts"), "{text}");
    assert!(text.contains("help: start this host with --tls-dir"), "{text}");
    let text = refused(&folder, None, Some(&dir));
    assert!(text.contains("node 0 does not speak TLS"), "{text}");
    assert!(text.contains("start it with --tls-dir"), "{text}");
}

#[test]
fn without_a_certificate_the_token_is_not_enough() {
    let folder = folder();
    let dir = Authority::new("the job's").host(&folder, "good");
    let rdzv = format!("127.0.0.1:{}", free_port());
    let root = Running::of(&mut host(&folder, 0, &rdzv, Some(&dir)));
    wait_for("node 0 to listen", LONG, || TcpStream::connect(&rdzv).ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let authority = Certificate::from_pem(fs::read(dir.join("ca.pem")).unwrap());
        let endpoint = Endpoint::from_shared(format!("https://{rdzv}")).unwrap();
        let endpoint = endpoint.tls_config(ClientTlsConfig::new().ca_certificate(authority)).unwrap();
        // It may be told at once, or with the first call.
        let connector = Connector { token: TOKEN.parse().unwrap(), tls: true, outage: Default::default() };
        let channel = match endpoint.connect_with_connector(connector).await {
            Ok(channel) => channel,
            Err(_) => return None,
        };
        let hello = pb::NodeHello { nproc: 1, min_nodes: 2, max_nodes: 2, ..Default::default() };
        let items = vec![pb::Up { item: Some(pb::up::Item::Hello(hello)) }];
        let request = tonic::Request::new(tokio_stream::iter([pb::FromNode { items }]));
        // What the service says comes from no error of the connection.
        match NodesClient::new(channel).attach(request).await {
            Err(status) if std::error::Error::source(&status).is_some() => None,
            answer => Some(format!("{answer:?}")),
        }
    });
    // Which error it is depends on whether the alert or the end of the connection is met first.
    assert_eq!(answer, None);
    // Node 0 waits for its host as before.
    let (status, _) = Running::of(&mut host(&folder, 1, &rdzv, Some(&dir))).finish();
    assert_eq!(status.code(), Some(0));
    assert_eq!(root.finish().0.code(), Some(0));
}

#[test]
fn files_that_are_missing_or_broken_are_named() {
    let folder = folder();
    let authority = Authority::new("the job's");
    let rdzv = format!("127.0.0.1:{}", free_port());
    for node in [0, 1] {
        let ends = |dir: &PathBuf| {
            let (status, text) = Running::of(&mut host(&folder, node, &rdzv, Some(dir))).finish();
            assert_eq!(status.code(), Some(1), "{text}");
            text
        };
        for name in ["ca.pem", "cert.pem", "key.pem"] {
            let dir = authority.host(&folder, &format!("without-{name}-{node}"));
            fs::remove_file(dir.join(name)).unwrap();
            let text = ends(&dir);
            let file = dir.join(name);
            assert!(text.contains(&format!("cannot open {}: No such file", file.display())), "{text}");
            assert!(text.contains("help: --tls-dir names a folder with ca.pem, cert.pem and key.pem"), "{text}");
            fs::write(&file, "-----BEGIN NOTHING-----\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            let text = ends(&dir);
            assert!(text.contains(&format!("{} cannot be used", dir.display())), "{text}");
        }
        // A key that everybody can read.
        let dir = authority.host(&folder, "open");
        fs::set_permissions(dir.join("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
        let text = ends(&dir);
        assert!(text.contains("key.pem can be used by every user") && text.contains("chmod 600"), "{text}");
        // The key of another certificate.
        let (dir, other) = (authority.host(&folder, "one"), authority.host(&folder, "other"));
        fs::copy(other.join("key.pem"), dir.join("key.pem")).unwrap();
        let text = ends(&dir);
        assert!(text.contains(&format!("the certificates in {} cannot be used", dir.display())), "{text}");
    }
}
