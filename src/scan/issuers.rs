//! What authorization servers say of themselves, asked once in a run, whoever's gate leads there. Where those documents
//! stand, and which of those addresses may be asked, is `catalogue`'s affair.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::exchange::{Exchange, Fault, Reply};
use crate::inquiry::Ask;

/// What came of asking at an address; nothing yet, or nothing that is worth keeping.
type Kept = Arc<tokio::sync::Mutex<Option<Vec<Exchange>>>>;

/// The documents of a run, by the addresses they were asked for at: those of an issuer are the same for all.
#[derive(Debug, Default)]
pub(super) struct Issuers(Mutex<HashMap<String, Kept>>);

impl Issuers {
    /// What comes of a request, sent for the first that wants it; whoever wants it meanwhile waits for that. `None`
    /// where the run is being stopped.
    pub(super) async fn asked_once(
        &self,
        endpoint: u32,
        ask: &Ask,
        asking: impl Future<Output = Option<Vec<Exchange>>>,
    ) -> Option<Vec<Exchange>> {
        let kept = Arc::clone(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(ask.request.url.clone())
                .or_default(),
        );
        let mut kept = kept.lock().await;
        if let Some(exchanges) = kept.as_ref() {
            let shared = exchanges.iter().map(|it| {
                let mut exchange = it.clone();
                exchange.endpoint = endpoint;
                exchange.attempt = ask.attempt;
                exchange.connection.shared = true;
                exchange
            });
            return Some(shared.collect());
        }
        let exchanges = asking.await?;
        // What failed on our side says nothing to the next.
        let is_ours = |it: &Exchange| matches!(it.reply, Reply::Fault(Fault::Local(_)));
        if !exchanges.iter().any(is_ours) {
            *kept = Some(exchanges.clone());
        }
        Some(exchanges)
    }
}
