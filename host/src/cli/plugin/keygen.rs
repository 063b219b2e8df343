//! `wharf plugin keygen`.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};

use super::super::{Ended, print};
use crate::trust::{KeyKind, PrivateKey};

const EXAMPLES: &str = "\
Examples:
  wharf plugin keygen team                  team.key (keep it secret) and team.pub
  wharf plugin keygen team --type p256      one that `cosign verify-blob` takes as well

The same with OpenSSL: openssl genpkey -algorithm ed25519 -out team.key
                       openssl pkey -in team.key -pubout -out team.pub";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// What the two files are called, without .key and .pub
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// Kind of key
    #[arg(long = "type", value_enum, default_value = "ed25519")]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Small and quick
    Ed25519,
    /// ECDSA over P-256, as cosign has it
    P256,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let key = PrivateKey::generate(match args.kind {
        Kind::Ed25519 => KeyKind::Ed25519,
        Kind::P256 => KeyKind::P256,
    })?;
    let public = key.public()?;
    let (secret_file, public_file) = (with_ending(&args.name, "key"), with_ending(&args.name, "pub"));
    write_new(&secret_file, 0o600, &key.to_pem()?)?;
    write_new(&public_file, 0o644, &public.to_pem()?)?;
    print(&format!(
        "{}  the private key: keep it secret, and away from where Wharf runs\n{}  the public key, for trusted_keys\n{} {}\n",
        secret_file.display(),
        public_file.display(),
        public.kind(),
        public.fingerprint()
    ))
}

fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Never over a key that is there: it may be the only one.
fn write_new(file: &Path, mode: u32, text: &str) -> Result<(), Ended> {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|cause| {
        let help = match cause.kind() {
            std::io::ErrorKind::AlreadyExists => {
                "\n    help: give another name, or remove it if nothing is signed with it"
            }
            _ => "",
        };
        Ended::Failed(format!("{} cannot be written: {cause}{help}", file.display()))
    })
}
