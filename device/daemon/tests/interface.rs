// SPDX-License-Identifier: GPL-2.0-only
//! The interface that the daemon serves is the one that is documented in `data/org.fasttrack1.Manager.xml`.

mod common;

use common::{block_on, Stage, Tree};

const DOCUMENTED: &str = include_str!("../../data/org.fasttrack1.Manager.xml");

/// The members of the interface: each with its arguments, of which the names of answers are left out.
fn members(xml: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut within = false;
    let bare = without_comments(xml);
    for tag in bare.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap_or("").trim_end_matches('/');
        let attribute = |name: &str| {
            let begin = tag.split_once(&format!(" {name}=\""))?.1;
            begin.split('"').next()
        };
        let name = attribute("name").unwrap_or("");
        match tag.split_whitespace().next() {
            Some("interface") => within = name == "org.fasttrack1.Manager",
            Some("/interface") => within = false,
            Some(kind @ ("method" | "signal" | "property")) if within => {
                found.push(format!("{kind} {name}"));
            }
            Some("arg") if within => {
                let direction = attribute("direction").unwrap_or("out");
                let name = if direction == "in" { name } else { "" };
                let kind = attribute("type").expect("a type");
                let member = found.last_mut().expect("an argument of a member");
                member.push_str(&format!(" {direction}:{name}:{kind}"));
            }
            _ => {}
        }
    }
    found.sort();
    found
}

fn without_comments(xml: &str) -> String {
    let mut parts = xml.split("<!--");
    let first = parts.next().unwrap_or("").to_string();
    let rest = parts.filter_map(|part| Some(part.split_once("-->")?.1));
    rest.fold(first, |text, part| text + part)
}

#[test]
fn what_is_served_is_documented_and_what_is_documented_is_served() {
    let documented = members(DOCUMENTED);
    assert!(
        documented
            .iter()
            .any(|member| member == "signal Changed out::t"),
        "{documented:?}"
    );
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let proxy = zbus::fdo::IntrospectableProxy::builder(&stage.connection)
            .destination(fasttrack_bus::NAME)
            .and_then(|builder| builder.path(fasttrack_bus::PATH));
        let proxy = proxy.expect("names").build().await.expect("a proxy");
        let served = proxy.introspect().await.expect("introspected");
        assert_eq!(members(&served), documented);
    });
}
