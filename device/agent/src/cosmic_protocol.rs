// SPDX-License-Identifier: GPL-2.0-only
//! `zcosmic_toplevel_info_v1`, of its description by wayland-scanner. The crate of COSMIC's protocols has a licence that
//! this program cannot be under; the description has one of its own.
#![allow(
    missing_docs,
    non_camel_case_types,
    unused_imports,
    unused_variables,
    dead_code,
    non_upper_case_globals
)]
#![allow(clippy::all)]

use wayland_client;
use wayland_client::protocol::*;
use wayland_protocols::ext::foreign_toplevel_list::v1::client::*;

pub mod __interfaces {
    use wayland_client::backend as wayland_backend;
    use wayland_client::protocol::__interfaces::*;
    use wayland_protocols::ext::foreign_toplevel_list::v1::client::__interfaces::*;
    wayland_scanner::generate_interfaces!("protocols/cosmic-toplevel-info-unstable-v1.xml");
}
use self::__interfaces::*;

wayland_scanner::generate_client_code!("protocols/cosmic-toplevel-info-unstable-v1.xml");
