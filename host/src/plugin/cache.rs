//! Compiled components on disk, so that a start takes milliseconds instead of seconds.
//!
//! The cache is never a root of trust: the component itself is what was asked for, and compiled code is only what was once made from
//! it. A file is named by the component's SHA-256 and the engine's compatibility hash, and carries an HMAC-SHA-256 over both and the
//! code, with a random key of this data directory. Code that was damaged, cut short, copied from elsewhere or changed by somebody who
//! cannot read the key is never loaded: it is removed, and the component compiled anew. The directory is 0700, the key 0600; who can read
//! the key could as well replace the binary.
//!
//! Code is read into memory, authenticated there, and loaded from there: no file is mapped, so one that grows, shrinks or is replaced meanwhile
//! changes nothing.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::Rng as _;
use sha2::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::cached_code::{self, Authentic};

/// Bytes of the key: a block of SHA-256, so that HMAC takes it as it is.
const KEY_BYTES: usize = 64;
/// Bytes of an authentication code.
const TAG_BYTES: usize = 32;
/// What the authentication code is about, so that it can never be taken for another one made with the key.
const PURPOSE: &[u8] = b"wharf compiled component 1\0";
/// Files that are kept; the ones used least recently go.
const MAX_FILES: usize = 64;

/// SHA-256 of a component.
pub(super) type Digest = [u8; 32];

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
}

impl Cache {
    /// Opens the cache in `dir`, which is made where it is not.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        Ok(Self { dir: dir.to_owned(), key: key(&dir.join("key"))? })
    }

    /// The component's code, if it is there and authentic.
    pub(super) fn get(&self, engine: &Engine, digest: &Digest) -> Option<Component> {
        let compatibility = compatibility(engine);
        let path = self.path(digest, compatibility);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Self::unusable(&path, &error.to_string()),
        };
        let Some((tag, code)) = bytes.split_at_checked(TAG_BYTES) else {
            return Self::unusable(&path, "it is cut short");
        };
        if self.mac(digest, compatibility, code).verify_slice(tag).is_err() {
            return Self::unusable(&path, "it is damaged, or was not made by this host");
        }
        match cached_code::component(engine, &Authentic::vouch_for(code)) {
            Ok(component) => {
                // Used last now: for the choice of what goes. Failing only makes that choice worse.
                let _ = File::open(&path).and_then(|file| file.set_modified(std::time::SystemTime::now()));
                Some(component)
            }
            Err(error) => Self::unusable(&path, &format!("{error:#}")),
        }
    }

    /// Keeps the component's code.
    pub(super) fn put(&self, engine: &Engine, digest: &Digest, component: &Component) -> wasmtime::Result<()> {
        let code = component.serialize()?;
        let compatibility = compatibility(engine);
        let tag = self.mac(digest, compatibility, &code).finalize().into_bytes();
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
        file.write_all(&tag)?;
        file.write_all(&code)?;
        // On disk before it has its name: a file with this name is always whole.
        file.as_file().sync_all()?;
        file.persist(self.path(digest, compatibility))?;
        self.prune()?;
        Ok(())
    }

    fn path(&self, digest: &Digest, compatibility: u64) -> PathBuf {
        self.dir.join(format!("{}-{compatibility:016x}.cwasm", hex::encode(digest)))
    }

    fn mac(&self, digest: &Digest, compatibility: u64, code: &[u8]) -> Hmac<Sha256> {
        // All that stands before the code has a fixed length, so no two inputs are the same bytes.
        Hmac::<Sha256>::new(&self.key.into())
            .chain_update(PURPOSE)
            .chain_update(digest)
            .chain_update(compatibility.to_be_bytes())
            .chain_update(code)
    }

    fn unusable(path: &Path, why: &str) -> Option<Component> {
        tracing::warn!(file = %path.display(), why, "compiled code in the cache cannot be used: it is removed and made anew");
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(file = %path.display(), %error, "it could not be removed");
        }
        None
    }

    /// Removes what was used least recently.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "cwasm") {
                files.push((fs::metadata(&path)?.modified()?, path));
            }
        }
        files.sort();
        let surplus = files.len().saturating_sub(MAX_FILES);
        for (_, path) in files.iter().take(surplus) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// The key of this data directory, made at random the first time. One that does not have the right length, or that others than its user may
/// read, is replaced: all that it vouched for is then made anew.
fn key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if let Ok(mut file) = File::open(path)
        && is_secret(&file.metadata()?)
    {
        file.read_exact(&mut key)?;
        return Ok(key);
    }
    rand::rng().fill_bytes(&mut key);
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file =
        tempfile::Builder::new().prefix(".key-").permissions(fs::Permissions::from_mode(0o600)).tempfile_in(dir)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(key)
}

fn is_secret(key: &fs::Metadata) -> bool {
    key.len() == KEY_BYTES as u64 && key.permissions().mode() & 0o077 == 0
}

/// What the engine's code depends on: wasmtime's version, the processor's features, the settings.
fn compatibility(engine: &Engine) -> u64 {
    // Fixed keys: the same in every process of the same binary. Another binary may differ, and then compiles anew.
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest component: it imports and exports nothing.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";
    const DIGEST: Digest = [7; 32];

    fn engine() -> Engine {
        Engine::default()
    }

    fn only_file(dir: &Path) -> PathBuf {
        let is_code = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "cwasm");
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).find(is_code).unwrap()
    }

    #[test]
    fn what_was_put_in_comes_out_also_after_a_restart() {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        let cache = Cache::open(dir.path()).unwrap();
        assert!(cache.get(&engine, &DIGEST).is_none());
        cache.put(&engine, &DIGEST, &Component::new(&engine, EMPTY).unwrap()).unwrap();
        assert!(cache.get(&engine, &DIGEST).is_some());
        let reopened = Cache::open(dir.path()).unwrap();
        assert!(reopened.get(&engine, &DIGEST).is_some());
        assert!(reopened.get(&engine, &[8; 32]).is_none());
    }

    #[test]
    fn changed_code_is_removed_and_never_loaded() {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        let cache = Cache::open(dir.path()).unwrap();
        let component = Component::new(&engine, EMPTY).unwrap();
        for at in ["first", "middle", "last", "cut"] {
            cache.put(&engine, &DIGEST, &component).unwrap();
            let path = only_file(dir.path());
            let mut bytes = fs::read(&path).unwrap();
            let (middle, last) = (bytes.len() / 2, bytes.len() - 1);
            match at {
                "first" => bytes[0] ^= 1,
                "middle" => bytes[middle] ^= 1,
                "last" => bytes[last] ^= 1,
                _ => bytes.truncate(20),
            }
            fs::write(&path, &bytes).unwrap();
            assert!(cache.get(&engine, &DIGEST).is_none(), "{at}");
            assert!(!path.exists(), "{at}");
        }
    }

    #[test]
    fn code_of_another_component_or_another_data_directory_is_not_taken() {
        let (one, other, engine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), engine());
        let (a, b) = (Cache::open(one.path()).unwrap(), Cache::open(other.path()).unwrap());
        a.put(&engine, &DIGEST, &Component::new(&engine, EMPTY).unwrap()).unwrap();
        let file = only_file(one.path());
        let compatibility = compatibility(&engine);
        fs::copy(&file, a.path(&[8; 32], compatibility)).unwrap();
        fs::copy(&file, b.path(&DIGEST, compatibility)).unwrap();
        assert!(a.get(&engine, &[8; 32]).is_none());
        assert!(b.get(&engine, &DIGEST).is_none());
        assert!(a.get(&engine, &DIGEST).is_some());
    }

    #[test]
    fn only_the_user_can_read_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        Cache::open(&inner).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&inner.join("key")), 0o600);
    }

    #[test]
    fn a_key_that_others_could_read_vouches_for_nothing_any_more() {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        Cache::open(dir.path()).unwrap().put(&engine, &DIGEST, &Component::new(&engine, EMPTY).unwrap()).unwrap();
        let (key, before) = (dir.path().join("key"), fs::read(dir.path().join("key")).unwrap());
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Cache::open(dir.path()).unwrap().get(&engine, &DIGEST).is_none());
        assert_ne!(fs::read(&key).unwrap(), before);
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_with_more_behind_it_is_not_taken() {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        let cache = Cache::open(dir.path()).unwrap();
        cache.put(&engine, &DIGEST, &Component::new(&engine, EMPTY).unwrap()).unwrap();
        let file = only_file(dir.path());
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"more").unwrap();
        assert!(cache.get(&engine, &DIGEST).is_none());
        assert!(!file.exists());
    }

    #[test]
    fn the_cache_keeps_a_bounded_number_of_files() {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        let cache = Cache::open(dir.path()).unwrap();
        let component = Component::new(&engine, EMPTY).unwrap();
        for n in 0..70 {
            cache.put(&engine, &[n; 32], &component).unwrap();
        }
        let files = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, MAX_FILES + 1, "the code files and the key");
        assert!(cache.get(&engine, &[69; 32]).is_some());
    }
}
