//! What holds for every tree of routes.

use crate::catalog::{Work, WorkKind};
use crate::config::{Blend, Config, Mode, Place, Route, Rule, Strategy as Ordering, Target, To, Unpriced, Variant};
use crate::health::Health;
use crate::routing::{Condition, Content, Facts, LeftOut, Order, RouteId, Router, Serves, Sticky, StickyOn};
use crate::routing::{TargetId, World};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Clone, Debug)]
struct Known {
    serves: Serves,
    p50: Option<u64>,
    price: Option<u32>,
    health: Health,
    denied: bool,
}

#[derive(Clone, Debug)]
struct Site {
    targets: Vec<Known>,
    restricted: bool,
}

impl World for Site {
    fn targets(&self) -> usize {
        self.targets.len()
    }

    fn serves(&self, target: TargetId, _: &str) -> Serves {
        self.targets[target.0].serves
    }

    fn upstream<'a>(&'a self, _: TargetId, model: &'a str) -> &'a str {
        model
    }

    fn p50(&self, target: TargetId, _: &str) -> Option<Duration> {
        self.targets[target.0].p50.map(Duration::from_millis)
    }

    fn price(&self, target: TargetId, _: &str, _: &Work) -> Option<f64> {
        self.targets[target.0].price.map(f64::from)
    }

    fn health(&self, target: TargetId) -> Health {
        self.targets[target.0].health
    }

    fn denies(&self, target: TargetId) -> Option<LeftOut> {
        (self.restricted && self.targets[target.0].denied).then_some(LeftOut::Header)
    }
}

fn known() -> impl Strategy<Value = Known> {
    let serves = prop_oneof![1 => Just(Serves::No), 1 => Just(Serves::Anything), 1 => Just(Serves::Open), 3 => Just(Serves::Listed)];
    let health = (0_u32..=4, prop::option::of(1_u64..4)).prop_map(|(rate, average)| Health {
        success_rate: f64::from(rate) / 4.0,
        average_latency: average.map(Duration::from_millis),
        samples: 4,
    });
    let rest = (prop::option::of(1_u64..4), prop::option::of(0_u32..3), any::<bool>());
    (serves, health, rest).prop_map(|(serves, health, (p50, price, denied))| Known {
        serves,
        p50,
        price,
        health,
        denied,
    })
}

/// A mode over so many places. Rules and variants name places by their position, counted round.
fn mode(places: usize) -> impl Strategy<Value = Mode> {
    let chain = move || {
        prop::collection::vec(0..places, 1..4).prop_map(|mut chain| {
            let mut seen = BTreeSet::new();
            chain.retain(|place| seen.insert(*place));
            chain
        })
    };
    let sticky = || {
        prop::option::of(Just(Sticky {
            on: StickyOn::User,
            ttl: Some(Duration::from_secs(60)),
        }))
    };
    let conditional = (any::<bool>(), chain()).prop_map(|(stream, places)| Mode::Conditional {
        rules: vec![Rule {
            when: Condition::Stream(stream),
            places,
        }],
    });
    let content = (any::<bool>(), chain()).prop_map(|(hello, places)| Mode::ContentBased {
        rules: vec![Rule {
            when: Content::Contains(if hello { "hello" } else { "bye" }.to_owned()),
            places,
        }],
    });
    let unpriced = prop_oneof![Just(Unpriced::Fallback), Just(Unpriced::Skip), Just(Unpriced::Allow)];
    let variants = (chain(), 0_u8..3, sticky()).prop_map(|(places, weight, sticky)| Mode::AbTest {
        variants: places
            .into_iter()
            .enumerate()
            .map(|(i, place)| Variant {
                place,
                weight: f64::from(weight) * i as f64,
                label: format!("v{i}"),
            })
            .collect(),
        sticky,
    });
    prop_oneof![
        Just(Mode::Single),
        Just(Mode::Fallback),
        sticky().prop_map(|sticky| Mode::LoadBalance { sticky }),
        Just(Mode::LeastLatency),
        unpriced.prop_map(|unpriced| Mode::CostOptimized { unpriced }),
        conditional,
        content,
        variants,
        Just(Mode::HealthWeighted {
            blend: Blend::default()
        }),
    ]
}

/// Route `i` of `routes`. It may name targets and routes that come after it.
fn route(i: usize, routes: usize, targets: usize) -> impl Strategy<Value = Route> {
    let all: Vec<To> = (0..targets)
        .map(To::Target)
        .chain((i + 1..routes).map(To::Route))
        .collect();
    let many = all.len();
    let named = prop::sample::subsequence(all, 1..=many.min(4)).prop_shuffle();
    let place = |to: To| {
        let weight = prop::option::of((0_u8..3).prop_map(f64::from));
        let model = prop::option::weighted(0.2, Just("own".to_owned()));
        (weight, model).prop_map(move |(weight, model)| Place {
            to,
            weight,
            model: model.filter(|_| matches!(to, To::Target(_))),
            ..Place::plain(0)
        })
    };
    let places = named.prop_flat_map(move |named| named.into_iter().map(place).collect::<Vec<_>>());
    let model = prop::option::weighted(0.3, Just("routed".to_owned()));
    (places, model).prop_flat_map(move |(places, model)| {
        mode(places.len()).prop_map(move |mode| Route {
            name: format!("r{i}"),
            model: model.clone(),
            strategy: Ordering::of(mode),
            places: places.clone(),
        })
    })
}

fn tree() -> impl Strategy<Value = (Config, Site)> {
    (1_usize..6, 1_usize..5).prop_flat_map(|(targets, routes)| {
        let all: Vec<_> = (0..routes).map(|i| route(i, routes, targets).boxed()).collect();
        (all, prop::collection::vec(known(), targets)).prop_map(move |(routes, known)| {
            let mut config = Config::implicit([]);
            config.targets = (0..targets).map(|i| Target::named(&format!("t{i}"))).collect();
            config.routes = routes;
            let site = Site {
                targets: known,
                restricted: true,
            };
            (config, site)
        })
    })
}

#[derive(Clone, Debug)]
struct Asked {
    route: bool,
    embeds: bool,
    stream: bool,
    user: Option<String>,
}

fn asked() -> impl Strategy<Value = Asked> {
    let user = prop::option::of("[a-z]{0,3}");
    (any::<bool>(), any::<bool>(), any::<bool>(), user).prop_map(|(route, embeds, stream, user)| Asked {
        route,
        embeds,
        stream,
        user,
    })
}

fn order(config: &Config, site: &Site, asked: &Asked, seed: u64) -> Order {
    let facts = Facts {
        model: if asked.route { "route/r0" } else { "m" },
        work: Work {
            kind: WorkKind::Chat,
            input_tokens: 1,
            output_tokens: None,
        },
        user: asked.user.as_deref(),
        session: None,
        stream: asked.stream,
        has_tools: false,
        key: None,
        project: None,
        headers: &(),
        metadata: &(),
        prompt: (!asked.embeds).then_some("well, hello"),
        now_ms: 1_000,
    };
    let mut rng = StdRng::seed_from_u64(seed);
    Router::new(config).order(RouteId::DEFAULT, &facts, site, &mut rng)
}

fn targets(order: &Order) -> BTreeSet<usize> {
    order.legs.iter().map(|leg| leg.target.0).collect()
}

proptest! {
    #[test]
    fn every_target_is_asked_once_or_left_out_for_one_reason(
        (config, site) in tree(), asked in asked(), seed in any::<u64>(),
    ) {
        let order = order(&config, &site, &asked, seed);
        let mut all: Vec<usize> = order.legs.iter().map(|leg| leg.target.0).collect();
        all.extend(order.left_out().map(|(target, _)| target.0));
        all.sort_unstable();
        prop_assert_eq!(all, (0..site.targets.len()).collect::<Vec<_>>());
        for leg in &order.legs {
            let known = &site.targets[leg.target.0];
            let place = &config.routes[leg.route.0].places[leg.place];
            prop_assert_eq!(place.to, To::Target(leg.target.0));
            prop_assert!(!known.denied);
            prop_assert!(known.serves != Serves::No || place.model.is_some());
            prop_assert!(!leg.model.starts_with("route/") || known.serves == Serves::Listed);
        }
        for (target, why) in order.left_out() {
            prop_assert!(why != LeftOut::Header || site.targets[target.0].denied);
        }
    }

    #[test]
    fn a_variant_is_drawn_only_where_somebody_answers(
        (config, site) in tree(), asked in asked(), seed in any::<u64>(),
    ) {
        let order = order(&config, &site, &asked, seed);
        prop_assert!(order.variant.is_none() || !order.legs.is_empty());
    }

    #[test]
    fn a_restriction_never_widens((config, site) in tree(), asked in asked(), seed in any::<u64>()) {
        let free = Site { restricted: false, ..site.clone() };
        let narrowed = targets(&order(&config, &site, &asked, seed));
        let all = targets(&order(&config, &free, &asked, seed));
        prop_assert!(narrowed.is_subset(&all), "{narrowed:?} of {all:?}");
        prop_assert!(narrowed.iter().all(|target| !site.targets[*target].denied));
    }

    #[test]
    fn dice_change_the_order_and_never_who_is_in_it(
        (config, site) in tree(), asked in asked(), seeds in any::<(u64, u64)>(),
    ) {
        let (one, two) = (order(&config, &site, &asked, seeds.0), order(&config, &site, &asked, seeds.1));
        prop_assert_eq!(targets(&one), targets(&two));
        prop_assert_eq!(order(&config, &site, &asked, seeds.0), one);
    }

    #[test]
    fn a_route_alone_in_another_changes_nothing(
        (config, site) in tree(), asked in asked(), seed in any::<u64>(),
    ) {
        // Its own model would come too late: a call of `route/r0` is one of the wrapper here.
        let mut wrapped = config.clone();
        wrapped.routes.push(Route {
            name: "outer".to_owned(),
            model: None,
            strategy: Ordering::of(Mode::Single),
            places: vec![Place { to: To::Route(0), ..Place::plain(0) }],
        });
        let last = wrapped.routes.len() - 1;
        wrapped.routes.swap(0, last);
        for place in wrapped.routes.iter_mut().flat_map(|route| &mut route.places) {
            if place.to == To::Route(0) {
                place.to = To::Route(last);
            }
        }
        let (inner, outer) = (order(&config, &site, &asked, seed), order(&wrapped, &site, &asked, seed));
        let named = |order: &Order| order.legs.iter().map(|leg| (leg.target, leg.model.clone())).collect::<Vec<_>>();
        prop_assert_eq!(named(&inner), named(&outer));
        prop_assert_eq!(inner.variant, outer.variant);
        prop_assert_eq!(inner.why_not, outer.why_not);
    }

    #[test]
    fn who_sticks_leads_the_same_whatever_the_dice(
        (mut config, site) in tree(), user in "[a-z]{1,8}", seeds in any::<(u64, u64)>(),
    ) {
        for route in &mut config.routes {
            route.strategy.mode = Mode::LoadBalance { sticky: Some(Sticky { on: StickyOn::User, ttl: None }) };
        }
        let asked = Asked { route: false, embeds: false, stream: false, user: Some(user) };
        prop_assert_eq!(order(&config, &site, &asked, seeds.0), order(&config, &site, &asked, seeds.1));
    }
}
