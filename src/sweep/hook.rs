//! Alerts told to whom the operator named: a program, or a webhook. It goes on beside the sweeps and delays none of them;
//! what cannot be told in time is told to the log.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use sha2::Sha256;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Url;

use super::Delivery;
use crate::periodic::plan::Hook;
use crate::trust;

/// Deliveries under way at once. Receivers that hang for longer than runs take do not pile up.
const UNDER_WAY: usize = 64;

/// The wait before a webhook is tried again; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest such wait, whatever the receiver asks for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The header with the signature of the body: `sha256=` and the HMAC in hexadecimal.
const SIGNATURE: &str = "x-mcp-census-signature";

/// The header with the event.
const EVENT: &str = "x-mcp-census-event";

/// The header that numbers deliveries: one that is tried again keeps its number.
const DELIVERY: &str = "x-mcp-census-delivery";

/// Deliveries under way.
#[derive(Debug)]
pub struct Hooks {
    handle: Handle,
    under_way: Mutex<JoinSet<()>>,
    next: AtomicU64,
    client: reqwest::Client,
    say: fn(&str),
}

impl Hooks {
    /// Deliveries on this runtime; `say` is told what went wrong.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn new(handle: Handle, say: fn(&str)) -> Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(trust::client_config(&[])?)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .no_proxy()
            .build()
            .context("cannot set up the HTTP client")?;
        Ok(Self {
            handle,
            under_way: Mutex::default(),
            next: AtomicU64::new(1),
            client,
            say,
        })
    }

    /// Hands a delivery over. It does not wait for anything.
    pub fn hand_over(&self, delivery: Delivery) {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while under_way.try_join_next().is_some() {}
        if under_way.len() >= UNDER_WAY {
            (self.say)(&format!(
                "{UNDER_WAY} hooks are under way: this one is not told"
            ));
            return;
        }
        let (client, say) = (self.client.clone(), self.say);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let delivery = Arc::new(delivery);
        if !delivery.hook.command.is_empty() {
            let delivery = Arc::clone(&delivery);
            under_way.spawn_on(
                async move {
                    if let Err(error) = run(&delivery).await {
                        say(&format!("hook {}: {error:#}", delivery.hook.command[0]));
                    }
                },
                &self.handle,
            );
        }
        if let Some(url) = delivery.hook.webhook.clone() {
            under_way.spawn_on(
                async move {
                    if let Err(error) = post(&client, &url, &delivery, number).await {
                        let shown = crate::target::redacted(&url);
                        say(&format!("webhook {shown}: {error:#}"));
                    }
                },
                &self.handle,
            );
        }
    }

    /// Waits for what is under way. Each delivery has its own bound.
    pub async fn finish(&self) {
        let mut under_way = std::mem::take(
            &mut *self
                .under_way
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        while under_way.join_next().await.is_some() {}
    }
}

/// Runs a program. It is killed when its time is over.
async fn run(delivery: &Delivery) -> Result<()> {
    let (program, arguments) = delivery
        .hook
        .command
        .split_first()
        .context("there is no program")?;
    let mut child = Command::new(program)
        .args(arguments)
        .envs(delivery.facts.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start it")?;
    let mut stdin = child.stdin.take();
    let told = async {
        if let Some(stdin) = &mut stdin {
            // Who does not read it to the end, does not want it.
            let _ = stdin.write_all(delivery.message.as_bytes()).await;
        }
        drop(stdin.take());
        child.wait().await
    };
    let status = timeout(delivery.hook.timeout, told)
        .await
        .context("it took too long, and was killed")?
        .context("cannot wait for it")?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Posts to a webhook, again where that may help.
async fn post(client: &reqwest::Client, url: &Url, delivery: &Delivery, number: u64) -> Result<()> {
    let signature = signature(&delivery.hook, delivery.message.as_bytes())?;
    let event = delivery
        .facts
        .iter()
        .find(|(name, _)| name == "SWEEP_EVENT")
        .map_or("", |(_, value)| value.as_str());
    let mut wait = FIRST_WAIT;
    for attempt in 0.. {
        let mut request = client
            .post(url.clone())
            .timeout(delivery.hook.timeout)
            .header(CONTENT_TYPE, "application/json")
            .header(EVENT, event)
            .header(DELIVERY, number)
            .body(delivery.message.clone());
        if let Some(signature) = &signature {
            request = request.header(SIGNATURE, signature);
        }
        let (why, asked) = match request.send().await {
            Ok(response) if response.status().is_success() => return Ok(()),
            Ok(response) => {
                let status = response.status();
                let asked = response.headers().get(RETRY_AFTER);
                let asked = asked.and_then(|it| it.to_str().ok()?.parse().ok());
                // What is wrong with the request stays wrong.
                let is_final =
                    status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429);
                if is_final || attempt >= delivery.hook.retries {
                    bail!("it answered {status}");
                }
                (
                    format!("it answered {status}"),
                    asked.map(Duration::from_secs),
                )
            }
            Err(error) => (
                format!("{:#}", anyhow::Error::new(error.without_url())),
                None,
            ),
        };
        if attempt >= delivery.hook.retries {
            bail!("{why}");
        }
        sleep(asked.unwrap_or(wait).min(LONGEST_WAIT)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    Ok(())
}

/// The HMAC-SHA256 (RFC 2104) of a body under the hook's key; none where it has no key.
fn signature(hook: &Hook, body: &[u8]) -> Result<Option<String>> {
    let key = match (&hook.secret_env, &hook.secret_file) {
        (Some(name), _) => {
            std::env::var(name).with_context(|| format!("the key: {name} is not set"))?
        }
        (None, Some(path)) => std::fs::read_to_string(path)
            .with_context(|| format!("the key: cannot read {}", path.display()))?,
        (None, None) => return Ok(None),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(key.trim_end().as_bytes())
        .context("the key is of no use")?;
    mac.update(body);
    let mut said = b"sha256=".to_vec();
    for byte in mac.finalize().into_bytes() {
        // Memory takes every byte.
        let _ = write!(said, "{byte:02x}");
    }
    Ok(Some(String::from_utf8_lossy(&said).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_of_rfc_4231() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "Jefe\n").unwrap();
        let hook = Hook {
            command: Vec::new(),
            webhook: None,
            secret_env: None,
            secret_file: Some(path),
            timeout: Duration::from_secs(1),
            retries: 0,
        };
        assert_eq!(
            signature(&hook, b"what do ya want for nothing?")
                .unwrap()
                .as_deref(),
            Some("sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        );
    }
}
