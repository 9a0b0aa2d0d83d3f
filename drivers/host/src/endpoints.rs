//! The HTTP endpoints of a run: `/metrics`, `/statusz`, `/healthz`, `/readyz`, and what `urutau table` asks of a running one.

use std::net::SocketAddr;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use contract::{Error, Kind};
use kernel::coordinator::Operator;
use kernel::id::TableName;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;

use crate::report::Report;
use crate::run::Control;

#[derive(Clone)]
struct Served {
    control: Control,
    metrics: PrometheusHandle,
}

/// Where a run listens.
pub struct Endpoints {
    listener: TcpListener,
    metrics: PrometheusHandle,
}

impl Endpoints {
    /// Takes the address and starts to record metrics.
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).await.map_err(|e| {
            let what = format!("--listen {address}: {e}");
            Error::new(Kind::Config, "listen", what, "give another address with --listen, or 'off'")
        })?;
        let metrics = PrometheusBuilder::new().install_recorder().map_err(|e| {
            Error::new(Kind::Fatal, "metrics", format!("metrics can't be recorded: {e}"), "this is a fault in urutau itself")
        })?;
        Ok(Self { listener, metrics })
    }

    /// The address that it has.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the process ends.
    pub fn serve(self, control: Control) {
        let served = Served { control, metrics: self.metrics };
        let router = Router::new()
            .route("/metrics", get(|State(s): State<Served>| async move { s.metrics.render() }))
            .route("/statusz", get(|State(s): State<Served>| async move { Json(s.control.report()) }))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .route("/tables/{table}/{action}", post(act))
            .with_state(served);
        let listener = self.listener;
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the endpoints stopped answering; the pipeline goes on");
            }
        });
    }
}

/// Ready: the tables are recovered and rows flow.
async fn ready(State(served): State<Served>) -> (StatusCode, String) {
    let report: Report = served.control.report();
    if report.running {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", report.waiting.join("; ")))
    }
}

async fn act(State(served): State<Served>, Path((table, action)): Path<(String, String)>) -> (StatusCode, String) {
    if !served.control.report().tables.contains_key(&table) {
        return (StatusCode::NOT_FOUND, format!("the pipeline has no table '{table}'\n"));
    }
    let name = TableName::from(table.as_str());
    let operator = match action.as_str() {
        "pause" => Operator::Pause(name),
        "resume" => Operator::Resume(name),
        "skip" => Operator::Skip(name),
        "release" => Operator::Release(name),
        "resnapshot" => Operator::Resnapshot(name),
        _ => return (StatusCode::NOT_FOUND, format!("'{action}' is none of pause, resume, skip, release, resnapshot\n")),
    };
    if served.control.ask(operator).await {
        (StatusCode::ACCEPTED, format!("{action} {table}: asked\n"))
    } else {
        (StatusCode::GONE, "the run is over\n".to_owned())
    }
}
