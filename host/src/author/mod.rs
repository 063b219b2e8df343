//! What a plugin author uses at the desk: from nothing to a component that a host runs.
//!
//! In: a name, or a project's folder. Out: files of a new project, a component, reports for a person. Nothing here runs in production,
//! and nothing here is needed by what does. The command line over it is `cli/plugin/`.

pub mod build;
pub mod embedded;
pub mod inspect;
pub mod new;
pub mod sdk;
pub mod trial;
