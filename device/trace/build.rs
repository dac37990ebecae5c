// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF programs, if there is a clang that can.
//!
//! `FASTTRACK_BPF`: `yes` fails without one, `no` builds without BPF; by default it is built with what there is.
//! `CLANG`: which one.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Debian has the names of versions alone, unless the package clang is installed.
const NAMES: [&str; 9] = [
    "clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15",
    "clang-14",
];

fn compile(clang: &str, object: &PathBuf) -> Result<(), String> {
    let done = Command::new(clang)
        .args(["-target", "bpf", "-g", "-O2", "-Wall", "-Werror", "-c"])
        .args(["bpf/origin.bpf.c", "-o"])
        .arg(object)
        .output()
        .map_err(|error| format!("{clang}: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{clang}: {}",
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

fn main() {
    println!("cargo::rustc-check-cfg=cfg(bpf_object)");
    for changed in ["bpf", "build.rs"] {
        println!("cargo::rerun-if-changed={changed}");
    }
    for variable in ["FASTTRACK_BPF", "CLANG"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let wanted = env::var("FASTTRACK_BPF").unwrap_or_default();
    if wanted == "no" {
        return;
    }
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = PathBuf::from(out).join("origin.bpf.o");
    let names = match env::var("CLANG") {
        Ok(name) => vec![name],
        Err(_) => NAMES.map(str::to_string).to_vec(),
    };
    let mut said = Vec::new();
    for name in names {
        match compile(&name, &object) {
            Ok(()) => {
                println!("cargo::rustc-cfg=bpf_object");
                return;
            }
            Err(error) => said.push(error),
        }
    }
    assert!(wanted != "yes", "no BPF programs: {}", said.join("\n"));
    // A clang that is there and cannot says why; that there is none, `doctor` says.
    for error in said.iter().filter(|error| !error.contains("os error 2")) {
        println!(
            "cargo::warning=built without BPF: {}",
            error.replace('\n', " ")
        );
    }
}
