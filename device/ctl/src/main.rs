// SPDX-License-Identifier: GPL-2.0-only
//! `fasttrackctl`: shows and changes what `fasttrackd` does.

mod cli;
mod doctor;
mod explain;
mod generate;
mod show;
mod stops;
mod top;

use clap::Parser;
use cli::{Cli, Command, Config, Foreground};
use fasttrack_bus::ManagerProxy;
use std::io::{self, Write};
use std::process::ExitCode;
use zbus::Connection;

/// What went wrong, and the way out.
type Failure = String;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(&cli)),
        Err(error) => Err(format!("no runtime: {error}")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "fasttrackctl: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what is asked for. Says whether all is well.
async fn run(cli: &Cli) -> Result<bool, Failure> {
    match &cli.command {
        Command::Status => {
            let status = connect(cli).await?.status().await.map_err(meaning)?;
            print(cli, &status, show::status)?;
        }
        Command::Top(how) => top::run(&connect(cli).await?, how, cli).await?,
        Command::Explain { what } => {
            let explanation = explain::of(&connect(cli).await?, what).await?;
            print(cli, &explanation, show::explanation)?;
        }
        Command::Foreground(what) => foreground(cli, what).await?,
        Command::Config(Config::Check) => return check(cli),
        Command::Doctor => {
            let findings =
                doctor::examine(cli, connect(cli).await.map_err(|error| error.to_string())).await;
            print(cli, &findings, |findings| doctor::text(findings))?;
            return Ok(findings.iter().all(|finding| finding.good));
        }
        Command::Generate { folder } => generate::all(folder)?,
    }
    Ok(true)
}

async fn foreground(cli: &Cli, what: &Foreground) -> Result<(), Failure> {
    let (mode, whom): (&str, &[String]) = match what {
        Foreground::Set { whom } => ("set", whom),
        Foreground::Add { whom } => ("add", whom),
        Foreground::Clear => ("clear", &[]),
    };
    let whom: Vec<&str> = whom.iter().map(String::as_str).collect();
    connect(cli)
        .await?
        .set_foreground(mode, &whom)
        .await
        .map_err(meaning)
}

fn check(cli: &Cli) -> Result<bool, Failure> {
    let (files, problems) = configuration(cli);
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    print(cli, &lines, |lines| {
        if lines.is_empty() {
            format!("{files} files, no error\n")
        } else {
            lines.join("\n") + "\n"
        }
    })?;
    Ok(problems.is_empty())
}

/// How many files of configuration there are, and what is wrong with them: the daemon's, and those of the agent of whoever
/// asks.
pub fn configuration(cli: &Cli) -> (usize, Vec<fasttrack_config::Problem>) {
    let var = |name: &str| std::env::var(name).ok();
    let agents = fasttrack_config::agent::places(&cli.root, var).into_iter();
    let files =
        fasttrack_config::files(&cli.root).len() + agents.filter(|path| path.exists()).count();
    let (_, mut problems) = fasttrack_config::load(&cli.root);
    problems.extend(fasttrack_config::agent::load(&cli.root, var).1);
    (files, problems)
}

/// The daemon, or why it cannot be reached and what to do.
pub async fn connect(cli: &Cli) -> Result<ManagerProxy<'static>, Failure> {
    let builder = match &cli.bus {
        Some(address) => zbus::connection::Builder::address(address.as_str()),
        None => zbus::connection::Builder::system(),
    };
    let bus = async { builder?.build().await }.await;
    let bus: Connection = bus.map_err(|error| {
        format!("there is no system bus ({error}).\nIn a container, give it the host's /run/dbus; elsewhere, start dbus.service.")
    })?;
    ManagerProxy::new(&bus).await.map_err(meaning)
}

/// What an answer means, and the way out.
pub fn meaning(error: zbus::Error) -> Failure {
    let zbus::Error::MethodError(name, text, _) = &error else {
        return format!("the bus has failed: {error}");
    };
    let text = text.clone().unwrap_or_default();
    match name.as_str() {
        "org.freedesktop.DBus.Error.ServiceUnknown"
        | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
            "fasttrackd does not run.\nStart it with 'systemctl enable --now fasttrackd'; \
             'journalctl -u fasttrackd' says why it has ended."
                .to_string()
        }
        "org.freedesktop.DBus.Error.NoReply" => {
            "fasttrackd has not answered. 'systemctl status fasttrackd' says how it is.".to_string()
        }
        "org.freedesktop.DBus.Error.AccessDenied" => format!("not allowed: {text}"),
        "org.freedesktop.DBus.Error.InvalidArgs" => text,
        other => format!("fasttrackd has failed ({other}): {text}"),
    }
}

/// Prints as JSON or as text. A reader that has gone is no error.
fn print<T: serde::Serialize + ?Sized>(
    cli: &Cli,
    what: &T,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let text = if cli.json {
        serde_json::to_string_pretty(what).map_err(|error| error.to_string())? + "\n"
    } else {
        text(what)
    };
    write_out(&text)
}

/// Writes to standard output.
pub fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {error}"))
        }
        _ => Ok(()),
    }
}
