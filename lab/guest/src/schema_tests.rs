// SPDX-License-Identifier: GPL-2.0-only
//! The JSON schemas of `contract/` are what the types say.

use crate::job::Job;
use crate::report::Report;
use schemars::generate::SchemaSettings;
use schemars::transform::{transform_subschemas, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{json, Value};
use std::path::Path;

/// Set, it has this test write the files.
const WRITE: &str = "FASTTRACK_WRITE_SCHEMAS";

/// What a job may leave out may also be null.
#[derive(Clone)]
struct Nullable;

impl Transform for Nullable {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let required = schema.get("required").cloned().unwrap_or_default();
        let needed: Vec<&str> = required
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            if !needed.contains(&name.as_str()) {
                allow_null(property);
            }
        }
    }
}

fn allow_null(property: &mut Value) {
    match property {
        Value::Object(keys) if keys.contains_key("anyOf") => {}
        Value::Object(keys) if keys.contains_key("$ref") => {
            let reference = keys.remove("$ref");
            keys.insert(
                "anyOf".into(),
                json!([{"$ref": reference}, {"type": "null"}]),
            );
        }
        Value::Object(keys) => {
            if let Some(Value::String(kind)) = keys.get("type") {
                let kinds = json!([kind, "null"]);
                keys.insert("type".into(), kinds);
            }
        }
        _ => {}
    }
}

fn text<T: JsonSchema>(settings: SchemaSettings) -> String {
    let schema = settings.into_generator().into_root_schema_for::<T>();
    serde_json::to_string_pretty(&schema).expect("JSON") + "\n"
}

#[test]
fn the_contracts_schemas_are_the_types() {
    let settings = SchemaSettings::draft2020_12;
    let job = text::<Job>(settings().for_deserialize().with_transform(Nullable));
    let result = text::<Report>(settings().for_serialize());
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract");
    for (name, text) in [("job", job), ("result", result)] {
        let path = contract.join(format!("{name}.schema.json"));
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &text).expect("a schema");
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "contract/{name}.schema.json is not what the types of {name}.json say; this renews it:\n    \
             {WRITE}=1 cargo test --manifest-path lab/guest/Cargo.toml schema"
        );
    }
}
