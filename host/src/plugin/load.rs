//! From a name or a file to a plugin that workers can be made of: read, identify, compile or take from the cache, compare with this
//! host, link, ask it to describe itself.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

use super::cache::{Cache, Digest};
use super::call::{attempt, begin};
use super::compatible::{Decoded, Unfit};
use super::read::{Bytes, read};
use super::signed;
use super::store::{self, Data};
use super::worker::SETUP_TIMEOUT;
use super::{
    Descriptor, HostOptions, LoadError, Plan, PluginSource, Requirements, StartError, Worker, WorkerContext, answer,
    compatible, death, engine,
};
use crate::capability::log::GuestLog;
use crate::capability::share::Budget;
use crate::capability::{Caller, Reached, Services, bindings, blocking, cut};
use crate::config::{Limit, Unit};
use crate::registry::Registry;

/// Components that are compiled at the same time.
const COMPILING: usize = 2;
/// Longest text of what is wrong with a component, bytes.
const MESSAGE_BYTES: usize = 4096;

/// The engine and everything that is made once. Cheap to clone.
#[derive(Clone)]
pub struct PluginHost {
    inner: Arc<Host>,
    registry: Option<Registry>,
}

struct Host {
    options: HostOptions,
    engine: Engine,
    linker: Linker<Data>,
    cache: Option<Cache>,
    /// Linear memory of all stores.
    memory: Budget,
    /// Compiling takes a core and memory for as long as it takes.
    compiling: Arc<Semaphore>,
    /// What is loaded, by digest. The lock of an entry is held while its component is compiled, so that a thousand outputs that
    /// start together compile it once.
    loaded: Mutex<HashMap<Digest, Arc<AsyncMutex<Weak<Loaded>>>>>,
}

/// A loaded component. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    host: Arc<Host>,
    loaded: Arc<Loaded>,
}

struct Loaded {
    digest: String,
    descriptor: Descriptor,
    pre: bindings::PluginPre<Data>,
}

impl PluginHost {
    /// Makes the engine, the linker and the epoch thread. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// Where wasmtime cannot be set up on this machine.
    pub fn new(options: HostOptions) -> Result<Self, LoadError> {
        let engine = engine::engine(&options).map_err(|error| unusable("host", &error))?;
        let linker = linker(&engine).map_err(|error| unusable("host", &error))?;
        let cache = options.cache_dir.as_deref().and_then(|dir| {
            Cache::open(dir)
                .inspect_err(|error| {
                    tracing::warn!(dir = %dir.display(), %error, "no cache for compiled plugins: they are compiled at each start");
                })
                .ok()
        });
        let total = options.limits.of(Limit::TotalMemory);
        let memory = Budget::new(Limit::TotalMemory, options.limits.place(Limit::TotalMemory, ""), total);
        let compiling = Arc::new(Semaphore::new(COMPILING));
        Ok(Self {
            inner: Arc::new(Host { options, engine, linker, cache, memory, compiling, loaded: Mutex::default() }),
            registry: None,
        })
    }

    /// The same, where components may come from a registry.
    #[must_use]
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// What registries are asked with.
    pub(super) fn registry(&self) -> Option<&Registry> {
        self.registry.as_ref()
    }

    /// Loads, compiles (or takes from the cache), checks and links a component, and asks it to describe itself.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub async fn load(&self, source: &PluginSource) -> Result<Plugin, LoadError> {
        self.load_required(source, &Requirements::default()).await
    }

    /// The same, where it must have a certain digest, or be signed. What is hashed and verified is in memory, and is what is compiled: a file that
    /// changes meanwhile changes nothing. Nothing of another component is looked at, let alone run.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub async fn load_required(&self, source: &PluginSource, required: &Requirements<'_>) -> Result<Plugin, LoadError> {
        let Bytes { name, bytes, origin } = read(source, required, self.registry.as_ref()).await?;
        let most = self.inner.options.limits.of(Limit::ComponentSize);
        if bytes.len() as u64 > most {
            let place = self.inner.options.limits.place(Limit::ComponentSize, "");
            let reached =
                Reached { name: place, limit: most, current: 0, requested: bytes.len() as u64, unit: Unit::Bytes };
            return Err(unusable_for(
                &name,
                Unfit::new(
                    format!("it is too large: {reached}"),
                    "build it without debug information (`wharf plugin build` does), or raise the limit",
                ),
            ));
        }
        let digest: Digest = Sha256::digest(&bytes).into();
        if let Some(pin) = required.pin.filter(|pin| !pin.is(&digest)) {
            return Err(LoadError::OtherDigest { name, pinned: pin.to_string(), found: hex::encode(digest) });
        }
        let bytes = Arc::new(bytes);
        signed::check(&name, &bytes, &origin, required).await?;
        compatible::check_form(&bytes).map_err(|unfit| unusable_for(&name, unfit))?;

        let entry = {
            let mut loaded = self.inner.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            // What nobody holds any more is forgotten, and its code given back.
            // An entry that somebody is about to lock is held by more than the map.
            loaded.retain(|_, entry| {
                Arc::strong_count(entry) > 1 || entry.try_lock().is_ok_and(|loaded| loaded.strong_count() > 0)
            });
            Arc::clone(loaded.entry(digest).or_default())
        };
        let mut entry = entry.lock().await;
        let loaded = match entry.upgrade() {
            Some(loaded) => loaded,
            None => {
                let loaded = Arc::new(Host::make(&self.inner, &name, bytes, digest).await?);
                *entry = Arc::downgrade(&loaded);
                loaded
            }
        };
        Ok(Plugin { host: Arc::clone(&self.inner), loaded })
    }
}

/// What all stores have of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InUse {
    /// Stores with a component in them; 0 where there is no pool.
    pub stores: u64,
    /// Linear memories, tables and stacks of the pool.
    pub places: [usize; 3],
    /// Bytes of linear memory, as `plugins.limits.total_memory` counts them.
    pub memory_bytes: u64,
}

impl PluginHost {
    /// What all stores have of the host now.
    #[must_use]
    pub fn in_use(&self) -> InUse {
        let pool = self.inner.engine.pooling_allocator_metrics();
        InUse {
            stores: pool.as_ref().map_or(0, |pool| pool.component_instances()),
            places: pool.map_or([0; 3], |pool| [pool.memories(), pool.tables(), pool.stacks()]),
            memory_bytes: self.inner.memory.used(),
        }
    }
}

impl Host {
    async fn make(
        host: &Arc<Self>,
        name: &str,
        bytes: Arc<Cow<'static, [u8]>>,
        digest: Digest,
    ) -> Result<Loaded, LoadError> {
        let refuse = |what: String| unusable_for(name, Unfit::plain(what));
        let host_memory = host.options.most_memory;
        let component = Self::compiled(host, name, &bytes, digest).await?;
        let component = match component {
            Ok(component) => component,
            Err(error) => {
                let error = format!("{error:#}");
                return Err(match too_large(&error, host_memory) {
                    Some(what) => refuse(what),
                    None => not_compiled(name, bytes, cut(&error, MESSAGE_BYTES)).await,
                });
            }
        };
        let pre = match host.linker.instantiate_pre(&component).and_then(bindings::PluginPre::new) {
            Ok(pre) => pre,
            Err(error) => return Err(unfit(name, bytes, cut(&format!("{error:#}"), MESSAGE_BYTES)).await),
        };
        match host.describe(name, &pre).await {
            Ok(descriptor) => Ok(Loaded { digest: hex::encode(digest), descriptor, pre }),
            // Types of what it exports are compared when it is called.
            Err(what) => Err(unfit(name, bytes, &what).await),
        }
    }

    /// The compiled component, on a thread that may block, within its time. What takes longer is given up and refused; Cranelift cannot be
    /// interrupted, so its thread goes on to its end, and keeps one of the few places until then.
    async fn compiled(
        host: &Arc<Self>,
        name: &str,
        bytes: &Arc<Cow<'static, [u8]>>,
        digest: Digest,
    ) -> Result<wasmtime::Result<Component>, LoadError> {
        let limits = &host.options.limits;
        let within = limits.duration(Limit::CompileTime);
        let place = Arc::clone(&host.compiling).acquire_owned();
        let (work, bytes) = (Arc::clone(host), Arc::clone(bytes));
        let compiling = async move {
            let place = place.await;
            blocking(move || {
                let component = work.component(&bytes, &digest);
                drop(place);
                component
            })
            .await
            .flatten()
        };
        tokio::time::timeout(within, compiling).await.map_err(|_| {
            let most = limits.of(Limit::CompileTime);
            let place = limits.place(Limit::CompileTime, "");
            let reached = Reached { name: place, limit: most, current: most, requested: 0, unit: Unit::Millis };
            let what = format!("it takes too long to compile: {reached}");
            unusable_for(name, Unfit::new(what, "try again when the machine is less busy, or raise the limit"))
        })
    }

    /// The compiled component. Takes seconds of CPU where it is not in the cache.
    fn component(&self, bytes: &[u8], digest: &Digest) -> wasmtime::Result<Component> {
        if let Some(component) = self.cache.as_ref().and_then(|cache| cache.get(&self.engine, digest)) {
            return Ok(component);
        }
        let component = Component::from_binary(&self.engine, bytes)?;
        if let Some(cache) = &self.cache
            && let Err(error) = cache.put(&self.engine, digest, &component)
        {
            tracing::warn!(
                error = format!("{error:#}"),
                "a compiled plugin could not be kept: it is compiled at the next start again"
            );
        }
        Ok(component)
    }

    /// Asks a component to describe itself, in a store that is thrown away.
    async fn describe(&self, name: &str, pre: &bindings::PluginPre<Data>) -> Result<Descriptor, String> {
        let services = Services::detached(name.into());
        services.limited_by(&Arc::new(self.options.limits.clone()));
        let log = GuestLog::new(Arc::clone(&services), 0, name.into());
        let mut store = self.store(Caller::new(services, log));
        let meter = begin(&mut store, self.options.limits.duration(Limit::CpuPerCall), SETUP_TIMEOUT);
        let described = attempt(&meter, SETUP_TIMEOUT, async {
            let component = pre.instantiate_async(&mut store).await?;
            component.wharf_output_output().call_describe(&mut store).await
        });
        match described.await {
            Ok(descriptor) => answer::descriptor(descriptor),
            Err(stopped) => {
                let death = death::death(&stopped, store.data());
                Err(format!("it died while it described itself ({}): {}", death.cause.as_str(), death.message))
            }
        }
    }

    fn store(&self, caller: Caller) -> Store<Data> {
        store::new(&self.engine, Data::new(caller, &self.memory, self.options.most_memory))
    }
}

impl Plugin {
    /// SHA-256 of the component, hexadecimal.
    pub fn digest(&self) -> &str {
        &self.loaded.digest
    }

    /// Interfaces of `wharf:output` that it imports (`s3`, `http`), without `types`.
    pub fn imports(&self) -> Vec<String> {
        let component = self.loaded.pre.instance_pre().component().component_type();
        let own = component.imports(&self.host.engine).filter_map(|(name, _)| {
            let (name, _) = name.split_once('@').unwrap_or((name, ""));
            Some(name.strip_prefix("wharf:output/")?.to_owned())
        });
        own.filter(|name| name != "types").collect()
    }

    /// What it says of itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.loaded.descriptor
    }

    /// A fresh store, instantiated and configured.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, context: WorkerContext) -> Result<(Worker, Plan), StartError> {
        context.services.limited_by(&Arc::new(self.host.options.limits.clone()));
        let log = GuestLog::new(Arc::clone(&context.services), context.worker, self.descriptor().name.as_str().into());
        let store = self.host.store(Caller::new(Arc::clone(&context.services), log));
        Worker::start(store, &self.loaded.pre, context).await
    }
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginHost").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Descriptor { name, version, .. } = self.descriptor();
        f.debug_struct("Plugin").field("name", name).field("version", version).field("digest", &self.digest()).finish()
    }
}

/// Everything that a component may import: this host's interfaces, and WASI 0.2 with nothing behind it.
fn linker(engine: &Engine) -> wasmtime::Result<Linker<Data>> {
    let mut linker = Linker::new(engine);
    bindings::Plugin::add_to_linker::<Data, HasSelf<Caller>>(&mut linker, |data| {
        // Asked for once in each call of the host.
        data.calls += 1;
        &mut data.caller
    })?;
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// Why a component cannot be compiled: it is damaged, or it needs something of WebAssembly that is off here.
async fn not_compiled(name: &str, bytes: Arc<Cow<'static, [u8]>>, error: &str) -> LoadError {
    let is_valid = blocking(move || Decoded::of(&bytes).is_ok()).await.unwrap_or(false);
    let unfit = match is_valid {
        true => Unfit::new(
            format!("it needs a part of WebAssembly that this host does not have: {error}"),
            "`wharf plugin build` builds with what there is; a plugin has one memory with 32-bit addresses, no threads, no async functions",
        ),
        false => Unfit::damaged(error),
    };
    unusable_for(name, unfit)
}

/// Why a component that wasmtime does not take does not fit: what differs from this host's own WIT files, else in wasmtime's words.
async fn unfit(name: &str, bytes: Arc<Cow<'static, [u8]>>, error: &str) -> LoadError {
    let explained = blocking(move || compatible::explain(&bytes)).await.ok().flatten();
    unusable_for(name, explained.unwrap_or_else(|| Unfit::plain(error)))
}

/// Says in an operator's words that a component is larger than the pool's places are: wasmtime has no types for that.
fn too_large(error: &str, limit: u64) -> Option<String> {
    let number_behind = |text: &str| -> Option<String> {
        let (_, rest) = error.split_once(text)?;
        Some(rest.chars().take_while(char::is_ascii_digit).collect())
    };
    if let Some(modules) = number_behind("transitively contains ").filter(|_| error.contains("core module instances")) {
        let most = engine::CORE_INSTANCES;
        return Some(format!(
            "it is made of {modules} modules, and may have at most {most}: build it with fewer native libraries"
        ));
    }
    let bytes = number_behind("memory has a minimum byte size of ")?;
    Some(format!("it begins with {bytes} bytes of memory, and may have {limit}: raise plugins.limits.max_memory"))
}

fn unusable(name: &str, error: &wasmtime::Error) -> LoadError {
    unusable_for(name, Unfit::plain(cut(&format!("{error:#}"), MESSAGE_BYTES)))
}

fn unusable_for(name: &str, Unfit { what, help }: Unfit) -> LoadError {
    LoadError::Unusable { name: name.to_owned(), what, help }
}
