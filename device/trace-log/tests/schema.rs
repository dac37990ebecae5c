// SPDX-License-Identifier: GPL-2.0-only
//! The Rust types and the tables of the documentation are those of the contract.
//!
//! `FASTTRACK_WRITE_SCHEMAS=1` writes both instead of comparing.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    version: u16,
    #[serde(rename = "enum")]
    enums: BTreeMap<String, Enum>,
    record: BTreeMap<String, Record>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enum {
    description: String,
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    id: u64,
    description: String,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    unit: String,
    from: Vec<String>,
    description: String,
}

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Schema {
    let path = checkout().join("contract/trace.toml");
    toml::from_str(&fs::read_to_string(&path).expect("the contract")).expect("a schema")
}

fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

fn rust_type(kind: &str) -> String {
    match kind {
        "u64" | "i64" | "bool" => kind.to_string(),
        "string" => "String".to_string(),
        "time" => "Time".to_string(),
        name => camel(name),
    }
}

fn sentence(text: &str) -> String {
    format!("{}{}.", text[..1].to_uppercase(), &text[1..])
}

/// FNV-1a of the schema's shape: two schemas of one version that differ are told apart.
fn schema_id(schema: &Schema) -> u64 {
    let mut shape = String::new();
    for (name, one) in &schema.enums {
        writeln!(shape, "{name} {}", one.names.join(" ")).expect("text");
    }
    for record in by_id(schema) {
        writeln!(shape, "{} {}", record.1.id, record.0).expect("text");
        for field in &record.1.fields {
            writeln!(shape, "{} {}", field.name, field.kind).expect("text");
        }
    }
    shape.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn by_id(schema: &Schema) -> Vec<(&String, &Record)> {
    let mut records: Vec<_> = schema.record.iter().collect();
    records.sort_by_key(|(_, record)| record.id);
    records
}

fn rust(schema: &Schema) -> String {
    let mut out = String::from(
        "// SPDX-License-Identifier: GPL-2.0-only\n\
         //! The schema's types, made from `contract/trace.toml` by `tests/schema.rs`.\n\n\
         use crate::codec::{enums, records, Time};\n\n",
    );
    let id = schema_id(schema);
    let _ = writeln!(
        out,
        "/// Version of the schema.\npub const SCHEMA_VERSION: u16 = {};\n",
        schema.version
    );
    let _ = writeln!(
        out,
        "/// Tells schemas of one version apart.\npub const SCHEMA_ID: u64 = {id:#x};\n\nenums! {{"
    );
    for (name, one) in &schema.enums {
        let _ = writeln!(
            out,
            "    /// {}\n    {} {{",
            sentence(&one.description),
            camel(name)
        );
        for (number, name) in one.names.iter().enumerate() {
            let constant = name.to_uppercase();
            let _ = writeln!(
                out,
                "        /// `{name}`.\n        {constant} = {number} \"{name}\","
            );
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n\nrecords! {\n");
    for (name, record) in by_id(schema) {
        let _ = writeln!(
            out,
            "    /// {}\n    {} = {} \"{name}\" {{",
            sentence(&record.description),
            camel(name),
            record.id
        );
        for field in &record.fields[1..] {
            let unit = match field.unit.as_str() {
                "" => String::new(),
                unit => format!(" Unit: {unit}."),
            };
            let text = sentence(&field.description);
            let _ = writeln!(
                out,
                "        /// {text}{unit}\n        {}: {},",
                field.name,
                rust_type(&field.kind)
            );
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n");
    out
}

fn tables(schema: &Schema) -> String {
    let mut out = String::new();
    for (name, record) in by_id(schema) {
        let _ = write!(
            out,
            "### {name} ({})\n{}\n\n",
            record.id,
            sentence(&record.description)
        );
        out.push_str("| field | type | unit | filled by | meaning |\n|---|---|---|---|---|\n");
        for field in &record.fields {
            let from = field.from.join(", ");
            let (name, kind, unit, text) =
                (&field.name, &field.kind, &field.unit, &field.description);
            let unit = unit.replace('|', "\\|");
            let _ = writeln!(out, "| {name} | {kind} | {unit} | {from} | {text} |");
        }
        out.push('\n');
    }
    out.push_str("### Names\n| enum | names, from 0 |\n|---|---|\n");
    for (name, one) in &schema.enums {
        let _ = writeln!(out, "| {name} | {} |", one.names.join(", "));
    }
    out
}

const BEGIN: &str = "<!-- records: made from contract/trace.toml -->\n";

fn documentation(schema: &Schema) -> String {
    let path = checkout().join("docs/TRACE.md");
    let text = fs::read_to_string(path).unwrap_or_default();
    let kept = text
        .split(BEGIN)
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_string();
    format!("{kept}\n\n{BEGIN}\n{}", tables(schema))
}

fn compare(path: PathBuf, made: &str) {
    if std::env::var_os("FASTTRACK_WRITE_SCHEMAS").is_some() {
        fs::write(&path, made).expect("written");
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is not what contract/trace.toml says: \
         FASTTRACK_WRITE_SCHEMAS=1 cargo test -p fasttrack-trace-log --test schema",
        path.display()
    );
}

#[test]
fn types_are_the_contracts() {
    let path = checkout().join("device/trace-log/src/schema.rs");
    compare(path, &rust(&schema()));
}

#[test]
fn documentation_is_the_contracts() {
    let made = documentation(&schema());
    compare(checkout().join("docs/TRACE.md"), &made);
}

/// What the encoding needs of a schema: ids and places that are not taken twice, a time first, bits for all fields.
#[test]
fn the_schema_can_be_encoded() {
    let schema = schema();
    let ids: Vec<u64> = by_id(&schema).iter().map(|(_, record)| record.id).collect();
    let all: Vec<u64> = (1..=ids.len() as u64).collect();
    assert_eq!(ids, all, "ids are 1, 2, 3 and so on");
    let sources = ["kernel", "bpf", "ftrace", "collector"];
    for (name, record) in &schema.record {
        assert_eq!(record.fields[0].name, "time", "{name}");
        assert_eq!(record.fields[0].kind, "time", "{name}");
        assert!(record.fields.len() <= 64, "{name}: a bitmap of 64 bits");
        let mut names: Vec<&str> = record
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), record.fields.len(), "{name}: a name twice");
        for field in &record.fields {
            let plain = ["u64", "i64", "bool", "string", "time"].contains(&field.kind.as_str());
            assert!(
                plain || schema.enums.contains_key(&field.kind),
                "{name}.{}: {}",
                field.name,
                field.kind
            );
            assert!(!field.from.is_empty(), "{name}.{}", field.name);
            assert!(field
                .from
                .iter()
                .all(|from| sources.contains(&from.as_str())));
        }
    }
}
