//! Reads `tenants`.

use std::sync::Arc;

use super::aws::Aws;
use super::http;
use super::model::{OutputConfig, TenantConfig};
use super::outputs::{self, Components};
use super::reader::{Elsewhere, Section};
use super::sources;

const ELSEWHERE: Elsewhere = &[
    ("name", "the tenant's name is its key under \"tenants\""),
    ("weight", "did you mean \"share\"?"),
    ("tag", "did you mean \"tags\"?"),
    ("match", "did you mean \"tags\"? An output's tags belong to the output"),
    ("data_dir", "there is one for all tenants, at the top level"),
    ("journal", "there is one for all tenants, at the top level"),
    ("http", "how requests are sent is one for all tenants, at the top level"),
    ("plugins", "it is one for all tenants, at the top level"),
];

/// Tenants, and what is theirs.
#[derive(Default)]
pub(crate) struct Tenants {
    pub tenants: Vec<TenantConfig>,
    pub sources: Vec<sources::Read>,
    pub outputs: Vec<OutputConfig>,
}

/// `archive`, or `acme/archive` of a tenant.
pub(crate) fn full_name(tenant: Option<&str>, name: &str) -> Arc<str> {
    match tenant {
        None => name.into(),
        Some(tenant) => format!("{tenant}/{name}").into(),
    }
}

/// Where a source of this name stands in the configuration.
pub(crate) fn source_section(name: &str) -> String {
    match name.split_once('/') {
        None => format!("sources.{name}"),
        Some((tenant, name)) => format!("tenants.{tenant}.sources.{name}"),
    }
}

/// Every tenant of the file. `aws` is what theirs are read over.
pub(crate) fn read(top: &mut Section<'_>, aws: &Aws, components: Components<'_>) -> Tenants {
    let mut all = Tenants::default();
    let Some(section) = top.section("tenants") else { return all };
    for entry in section.entries() {
        sources::name(&section, &entry.key, entry.key_at, "tenant");
        let path = section.path_of(&entry.key);
        if let Some(tenant) = Section::of(section.sink(), path, entry.key_at, &entry.value) {
            one(tenant, &entry.key, aws, components, &mut all);
        }
    }
    all
}

/// One tenant, whose keys are those of `section`.
fn one(mut section: Section<'_>, name: &str, aws: &Aws, components: Components<'_>, all: &mut Tenants) {
    let share = section.count("share", 1..=1000).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let tags = section.words("tags").unwrap_or_default();
    let own = section.section("aws").map(|section| super::aws::read(section, aws));
    let aws = own.as_ref().unwrap_or(aws);
    let credentials = http::credentials(&mut section);
    all.sources.extend(sources::read(&mut section, Some(name)));
    all.outputs.extend(outputs::read(&mut section, Some(name), aws, &credentials, components));
    let trusted_keys = super::trust::trusted_keys(&mut section, components.folder);
    section.finish(ELSEWHERE);
    all.tenants.push(TenantConfig { name: name.into(), share, tags, credentials: credentials.whole, trusted_keys });
}
