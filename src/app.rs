//! Builds the parts from a configuration and owns the order of shutdown.
//!
//! Everything that can be wrong with the surroundings (an address in use, a
//! certificate that cannot be read, a proxy that cannot be used) is found here,
//! before the first connection is accepted. Stopping goes the other way round:
//! no new connections, running ones finish, then the threads end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admin::guesses::Guesses;
use crate::admin::state::Admin;
use crate::admin::{self, page};
use crate::clock::Clock;
use crate::compactor::client::{Client, NoClient};
use crate::compactor::{Compactor, Parts};
use crate::config::{self, Config, Listen, StoreUrl};
use crate::engine::measure;
use crate::metrics::Metrics;
use crate::recall::Recall;
use crate::server::connection::Host;
use crate::server::exchange::exchange;
use crate::server::limits::Limits;
use crate::server::room::Room;
use crate::server::tls::{self, TlsError};
use crate::server::worker::{Shared, Worker};
use crate::server::{Crew, Places, accept, accept_here};
use crate::store::writer::Writer;
use crate::store::{Guarded, Memory, Store, postgres, sqlite};
use crate::upstream::{Connector, ConnectorError, Options, Upstream, UpstreamError};
use crate::views::Views;
use crate::views::tally::Tally;

/// Connections to an admin surface of its own; the proxy's do not count, so that
/// a full house can still be looked at.
const ADMIN_CONNECTIONS: usize = 64;

/// How often the store is tidied up.
const TEND: Duration = Duration::from_mins(10);

/// How often it is looked whether a proxy has nothing to do.
const LOOK: Duration = Duration::from_micros(200);

/// Why the proxy cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}{}", remedy(source))]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a worker thread")]
    Thread(#[source] io::Error),
    /// The listener cannot be encrypted.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The way to upstream cannot be used.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// Upstream itself cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The database cannot be used as it is.
    #[error(transparent)]
    Database(#[from] postgres::OpenError),
    /// The summarizer has no key.
    #[error(
        "summarizer.api_key_env: {0} is not set, or is no key: set it to the key of the summarizer's upstream"
    )]
    SummarizerKey(String),
    /// The summarizer cannot be called.
    #[error(transparent)]
    Summarizer(#[from] NoClient),
    /// A metric cannot be registered.
    #[error("cannot register metrics")]
    Metrics(#[from] prometheus::Error),
}

/// What can be done about an address, where that is known.
fn remedy(refusal: &io::Error) -> &'static str {
    match refusal.kind() {
        io::ErrorKind::AddrInUse => ": is another process using it?",
        _ => "",
    }
}

/// What comes from the process's surroundings rather than from its configuration.
pub struct Surroundings {
    /// The admin token.
    pub admin_token: Option<String>,
    /// The summarizer's own key.
    pub summarizer_key: Option<String>,
    /// The proxies that the environment names.
    pub proxies: Matcher,
    /// The clock that ages are measured with.
    pub clock: Clock,
}

/// A proxy that listens.
pub struct App {
    listener: TcpListener,
    admin: Option<(TcpListener, Arc<Host>)>,
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    crews: Vec<Crew>,
    places: Places,
    admin_places: Places,
    draining: CancellationToken,
    grace: Duration,
    views: Arc<Views>,
    metrics: Arc<Metrics>,
    page_link: String,
}

/// Tells when a proxy has nothing to do.
#[derive(Clone)]
pub struct Quiet {
    views: Arc<Views>,
    metrics: Arc<Metrics>,
}

impl Quiet {
    /// Waits until no request is on its way and nothing is being prepared in the
    /// background, so that what a request set off has happened before the next.
    pub async fn wait(&self) {
        while self.metrics.in_flight.get() > 0 || !self.views.is_idle() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl App {
    /// Starts the workers and listens; connections wait until [`Self::run`].
    pub async fn start(config: &Config, surroundings: Surroundings) -> Result<Self, StartError> {
        let store = open_store(config).await?;
        Self::start_on(store, config, surroundings).await
    }

    /// The same on a store that is open already.
    pub async fn start_on(
        store: Arc<dyn Store>,
        config: &Config,
        surroundings: Surroundings,
    ) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::new()?);
        let limits = &config.limits;
        let places = Places::new(limits.connections, metrics.connections.clone());
        let admin_places = Places::new(ADMIN_CONNECTIONS, metrics.connections.clone());
        let base = base_of(&config.upstream)?;
        let recall = Arc::new(Recall::new(store.clone(), metrics.clone()));
        let views = make_views(store, config, &surroundings, &base, &metrics).await?;
        let shared = Arc::new(Shared {
            limits: Limits {
                body_bytes: limits.body_bytes,
                body_idle: limits.body_idle,
                buffer_wait: limits.buffer_wait,
            },
            room: Room::new(limits.buffered_bytes, metrics.buffered_bytes.clone()),
            models: config.models.clone(),
            views: views.clone(),
            metrics: metrics.clone(),
        });
        let draining = CancellationToken::new();
        let admin = Arc::new(Admin {
            shared: shared.clone(),
            recall,
            metrics_open: config.admin.metrics_open,
            listen: config.admin.listen.clone().unwrap_or(config.listen.clone()),
            token: surroundings.admin_token,
            encrypts: config.tls.cert.is_some(),
            draining: draining.clone(),
            guesses: Guesses::default(),
        });
        let acceptor = match (&config.tls.cert, &config.tls.key) {
            (Some(cert), Some(key)) => Some(tls::acceptor(cert, key)?),
            _ => None,
        };
        let host = |router, draining: &CancellationToken| {
            Arc::new(Host {
                router,
                tls: acceptor.clone(),
                header_timeout: limits.header_timeout,
                unread_timeout: limits.upstream_idle,
                draining: draining.clone(),
            })
        };
        // The admin surface goes on answering while the proxy drains.
        let stopping = CancellationToken::new();
        let (listener, address) = bind(&config.listen).await?;
        let (admin_listener, admin_address) = match &config.admin.listen {
            None => (None, None),
            Some(listen) => {
                let (listener, address) = bind(listen).await?;
                let router = admin::health(admin.clone()).merge(admin::surface(admin.clone()));
                (Some((listener, host(router, &stopping))), Some(address))
            }
        };
        let connector = Connector::new(&base, &surroundings.proxies, limits.upstream_connect)?;
        let mut crews = Vec::new();
        for number in 0..worker_count(config.workers) {
            let options = Options {
                base: base.clone(),
                connect: limits.upstream_connect,
                idle: limits.upstream_idle,
                idle_connections: limits.idle_connections,
            };
            let worker = Arc::new(Worker {
                upstream: Upstream::new(options, connector.clone())?,
                shared: shared.clone(),
            });
            let moved = admin_listener.is_some();
            let mut router = admin::health(admin.clone());
            router = router.merge(admin::nothing_else(admin.clone(), moved));
            if !moved {
                router = router.merge(admin::surface(admin.clone()));
            }
            let forwarding = Router::new().fallback(exchange).with_state(worker.clone());
            let router = router.merge(admin::never_forward_own_paths(admin.clone(), forwarding));
            let tidy = move || worker.upstream.tidy();
            let name = format!("worker-{number}");
            let crew = Crew::start(name, host(router, &draining), limits.drain, tidy);
            crews.push(crew.map_err(StartError::Thread)?);
        }
        Ok(Self {
            listener,
            admin: admin_listener,
            address,
            admin_address,
            crews,
            places,
            admin_places,
            draining,
            grace: limits.drain,
            views,
            metrics,
            page_link: page::link(&admin),
        })
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin surface listens, if it has an address of its own.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// The path that opens the web page, without typing a token, for some hours.
    pub fn page_link(&self) -> &str {
        &self.page_link
    }

    /// What has gone by, also after the end.
    pub fn tally(&self) -> Arc<Tally> {
        self.views.tally()
    }

    /// What operators watch, also after the end.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Tells when there is nothing to do.
    pub fn quiet(&self) -> Quiet {
        Quiet {
            views: self.views.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Serves until `stop` resolves, then drains. Blocks its thread at the very
    /// end, while the workers finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let admin = self
            .admin
            .map(|(listener, host)| tokio::spawn(accept_here(listener, host, self.admin_places)));
        // The first count of a text would else wait for the vocabulary.
        let warm = tokio::task::spawn_blocking(measure::warm);
        let gardener = tokio::spawn(tend(self.views.clone()));
        tokio::select! {
            () = accept(&self.listener, &self.crews, &self.places) => {}
            () = stop => {}
        }
        tracing::info!(limit = ?self.grace, "draining: no new connections, running ones finish");
        drop(self.listener);
        self.draining.cancel();
        let crews = self.crews;
        let joined = tokio::task::spawn_blocking(|| crews.into_iter().for_each(Crew::join));
        if joined.await.is_err() {
            tracing::error!("waiting for the workers failed");
        }
        gardener.abort();
        drop(warm.await);
        self.views.close().await;
        // Last, so that readiness and metrics can be asked for while draining.
        if let Some(admin) = admin {
            admin.abort();
        }
    }
}

/// What makes views, with a store and a way to summaries.
async fn make_views(
    store: Arc<dyn Store>,
    config: &Config,
    surroundings: &Surroundings,
    base: &Uri,
    metrics: &Arc<Metrics>,
) -> Result<Arc<Views>, StartError> {
    let counted = metrics.clone();
    let witness = move |took, failed| counted.store("record", took, failed);
    let writer = Writer::witnessed(store.clone(), Box::new(witness)).map_err(StartError::Thread)?;
    let clock = surroundings.clock.clone();
    let (own, counted) = (config.clone(), metrics.clone());
    let views = Views::new(store.clone(), writer, own, counted, clock, secret()).await;
    let parts = summaries(config, surroundings, base.clone(), store, metrics)?;
    Ok(Arc::new(
        views.with_compactor(Arc::new(Compactor::new(parts))),
    ))
}

/// What summaries are made with.
fn summaries(
    config: &Config,
    surroundings: &Surroundings,
    base: Uri,
    store: Arc<dyn Store>,
    metrics: &Arc<Metrics>,
) -> Result<Parts, StartError> {
    let key = surroundings.summarizer_key.as_deref();
    let elsewhere = match (&config.summarizer.upstream, key) {
        (None, None) => None,
        // The main one, named once more.
        (Some(upstream), None) if *upstream == config.upstream => None,
        (upstream, key) => {
            let name = config.summarizer.api_key_env.as_ref();
            let name = name.map_or_else(String::new, ToString::to_string);
            let key = key.map(HeaderValue::from_str);
            let Some(Ok(mut key)) = key else {
                return Err(StartError::SummarizerKey(name));
            };
            key.set_sensitive(true);
            let base = upstream.as_ref().map_or(Ok(base.clone()), base_of)?;
            Some((base, key))
        }
    };
    let mut bases = vec![base.clone()];
    bases.extend(elsewhere.iter().map(|(base, _)| base.clone()));
    let connect = config.limits.upstream_connect;
    Ok(Parts {
        client: Client::new(&bases, &surroundings.proxies, connect)?,
        base,
        elsewhere,
        config: config.clone(),
        store,
        metrics: metrics.clone(),
        clock: surroundings.clock.clone(),
    })
}

/// Removes what is no longer kept, now and then.
async fn tend(views: Arc<Views>) {
    let mut clock = tokio::time::interval(TEND);
    // Not at the very start, when there is enough to do.
    clock.tick().await;
    loop {
        clock.tick().await;
        views.collect().await;
    }
}

/// The store that the configuration names.
pub(crate) async fn open_store(config: &Config) -> Result<Arc<dyn Store>, StartError> {
    match &config.store.url {
        StoreUrl::Memory => Ok(Arc::new(Memory::new())),
        // Only a configuration made by hand names no folder.
        StoreUrl::Sqlite if config.data_dir.as_os_str().is_empty() => Ok(Arc::new(Memory::new())),
        StoreUrl::Sqlite => {
            let opened = sqlite::open(&config.data_dir, config.store.timeout).await;
            Ok(Arc::new(Guarded::before(opened.store, None)))
        }
        StoreUrl::Postgres(url) => {
            let config::Store { timeout, pool, .. } = config.store;
            let opened = postgres::open(url.reveal(), pool, timeout).await?;
            let trouble = opened.reports.first().map(ToString::to_string);
            Ok(Arc::new(Guarded::before(opened.store, trouble.as_deref())))
        }
    }
}

/// Random bytes that nobody else can know.
fn secret() -> [u8; 32] {
    let mut secret = [0; 32];
    let random = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    let bytes = random.iter().flat_map(|uuid| uuid.into_bytes());
    secret
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = from);
    secret
}

fn base_of(upstream: &config::Upstream) -> Result<Uri, StartError> {
    let built = Uri::builder()
        .scheme(upstream.scheme().clone())
        .authority(upstream.authority().clone())
        .path_and_query(format!("{}/", upstream.base_path()))
        .build();
    Ok(built.map_err(|error| UpstreamError::Target(error.to_string()))?)
}

fn worker_count(configured: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    configured.unwrap_or_else(cores)
}

async fn bind(listen: &Listen) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen {
        address: listen.to_string(),
        source,
    };
    let listener = TcpListener::bind((listen.host(), listen.port()))
        .await
        .map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
