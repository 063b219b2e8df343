//! Who tenants are to AWS, and where one could act for another.
//!
//! A role that trusts the host acts for whoever makes the host assume it. Its external id is what tells tenants apart: the operator gives each
//! tenant its own, and the role's owner allows the role for that id alone, so a tenant that names another's role is refused by STS ("the
//! confused deputy problem", IAM User Guide: <https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html>).

use crate::config::{Config, CredentialKind, OutputConfig, TenantConfig};

use super::CheckedOutput;

/// What an operator should know of tenants' identities, a sentence each. `checked` are the configuration's outputs, in its order.
#[must_use]
pub fn identity_warnings(config: &Config, checked: &[CheckedOutput]) -> Vec<String> {
    let reaches_aws = |tenant: &TenantConfig| {
        let mut outputs = config.outputs.iter().zip(checked);
        outputs.any(|(output, checked)| {
            let plan = &checked.plan;
            let is_of_it = output.tenant.as_deref() == Some(&*tenant.name);
            is_of_it && (!plan.s3.is_empty() || !plan.log_groups.is_empty() || signs(config, output))
        })
    };
    config.tenants.iter().filter(|tenant| reaches_aws(tenant)).filter_map(|tenant| warning(config, tenant)).collect()
}

fn warning(config: &Config, tenant: &TenantConfig) -> Option<String> {
    let name = &tenant.name;
    if !tenant.own_identity {
        return Some(format!(
            "tenant {name} has no AWS identity of its own: its outputs may do whatever the host may; give it aws: {{ role_arn, external_id }}"
        ));
    }
    tenant.aws.role_arn.as_ref()?;
    let Some(id) = &tenant.aws.external_id else {
        return Some(format!(
            "tenant {name} has a role without an external id: another tenant that names this role would get it; give it aws.external_id, and let \
             the role's trust policy ask for it"
        ));
    };
    let mut others = config.tenants.iter().filter(|other| other.name != *name);
    let other = others.find(|other| other.aws.role_arn.is_some() && other.aws.external_id.as_ref() == Some(id))?;
    Some(format!(
        "tenants {name} and {} have the same external id, so the role of one can be had by the other",
        other.name
    ))
}

/// Whether its HTTP requests may be signed with its AWS identity.
fn signs(config: &Config, output: &OutputConfig) -> bool {
    let granted = |name: &str| output.grants.credentials.iter().any(|grant| *grant.name == *name);
    let credentials = config.credentials_of(output).iter();
    credentials.filter(|it| matches!(it.kind, CredentialKind::SigV4 { .. })).any(|it| granted(&it.name))
}
