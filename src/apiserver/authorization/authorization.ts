/**
 * Authorization: runs the authorizers, keeps them up to date from the watch cache, and caches decisions per user until
 * a role or binding changes.
 */

import type { ResourceSlice } from '../../api/devices/types.ts';
import type { PersistentVolume, Pod } from '../../api/generated/core/v1.ts';
import type { Ingress } from '../../api/generated/networking/v1.ts';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../api/generated/rbac/v1.ts';
import type { VolumeAttachment } from '../../api/generated/storage/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { Log } from '../../base/log.ts';
import type { AuthorizationMode, Authorizer } from '../config/server-config.ts';
import { createNodeAuthorizer } from '../core/authorization/node.ts';
import { createRbacAuthorizer } from '../core/authorization/rbac.ts';
import { type Action, type Decision, describeDenial, PRIVILEGED_GROUP } from '../core/authorization/types.ts';
import type { RequestInfo } from '../http/request-info.ts';
import type { KindCache } from '../watch-cache/kind-cache.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import type { RemoteDeps } from '../webhooks/remote.ts';
import { AccessMetrics, type Decisions } from './access-metrics.ts';
import { AccessWebhookClient } from './access-webhook.ts';
import { isScoped, scopeDenial } from './scopes.ts';
import { selectorsOf } from './selectors.ts';

const MAX_DECISIONS_PER_USER = 512;

interface Remembered {
  readonly generation: number;
  readonly chain: readonly Link[];
  /**
   * `allowed`: cached actions that RBAC allowed. `decisions`: RBAC's counters, which also count decisions from the
   * cache.
   */
  readonly decisions: Decisions;
  readonly allowed: Set<string>;
  /** Allowed requests, identified by the cached result of parsing their path. No key must be built for them. */
  readonly requests: Set<RequestInfo>;
}

type Link = { readonly decisions: Decisions } & (
  | { readonly type: Exclude<AuthorizationMode, 'Webhook'> }
  | { readonly type: 'Webhook'; readonly client: AccessWebhookClient }
);

export const DEFAULT_AUTHORIZERS: readonly Authorizer[] = [{ type: 'Node' }, { type: 'RBAC' }];
const FORBIDDEN: Decision = { allowed: false, reason: 'Everything is forbidden.' };
const ALLOWED: Decision = { allowed: true, reason: '' };

export class Authorization {
  readonly #configured: () => readonly Authorizer[];
  readonly #deps: RemoteDeps & { readonly log: Log };
  readonly #metrics = new AccessMetrics();
  readonly rbac = createRbacAuthorizer();
  readonly #nodes = createNodeAuthorizer();
  readonly #remembered = new WeakMap<UserInfo, Remembered>();
  #authorizers: readonly Authorizer[] = [];
  #links: readonly Link[] = [];
  #remote = false;

  /** `configured` returns the authorizers in their order. It returns a new list after a reconfiguration. */
  constructor(configured: () => readonly Authorizer[], deps: RemoteDeps & { readonly log: Log }) {
    this.#configured = configured;
    this.#deps = deps;
  }

  /** Reports whether an authorization webhook is configured. */
  get hasWebhook(): boolean {
    return this.#chain.some(({ type }) => type === 'Webhook');
  }

  get #chain(): readonly Link[] {
    const authorizers = this.#configured();
    if (authorizers !== this.#authorizers) {
      this.#authorizers = authorizers;
      this.#links = authorizers.map((each) => this.#linkOf(each));
      this.#remote = authorizers.some(({ type }) => type === 'Webhook');
    }
    return this.#links;
  }

  #linkOf(authorizer: Authorizer): Link {
    const { type, name = type.toLowerCase() } = authorizer;
    const decisions = this.#metrics.decisionsOf(type, name);
    if (authorizer.type !== 'Webhook') return { type: authorizer.type, decisions };
    const deps = { ...this.#deps, metrics: this.#metrics };
    return { type: 'Webhook', decisions, client: new AccessWebhookClient(name, authorizer.webhook, deps) };
  }

  metrics(): string {
    return this.#metrics.render();
  }

  /** Follows roles, bindings, pods, volumes and volume attachments. Call it after each load of the cache. */
  follow(cache: WatchCache): void {
    this.#followKind<ClusterRole>(
      cache.kind('clusterroles'),
      (role) => this.rbac.setClusterRole(role),
      (_, name) => this.rbac.deleteClusterRole(name),
    );
    this.#followKind<Role>(
      cache.kind('roles'),
      (role) => this.rbac.setRole(role),
      (namespace, name) => this.rbac.deleteRole(namespace, name),
    );
    this.#followKind<ClusterRoleBinding>(
      cache.kind('clusterrolebindings'),
      (binding) => this.rbac.setClusterRoleBinding(binding),
      (_, name) => this.rbac.deleteClusterRoleBinding(name),
    );
    this.#followKind<RoleBinding>(
      cache.kind('rolebindings'),
      (binding) => this.rbac.setRoleBinding(binding),
      (namespace, name) => this.rbac.deleteRoleBinding(namespace, name),
    );
    this.#followKind<Pod>(
      cache.kind('pods'),
      (pod) => this.#nodes.setPod(pod),
      (namespace, name) => this.#nodes.deletePod(namespace, name),
    );
    this.#followKind<PersistentVolume>(
      cache.kind('persistentvolumes'),
      (volume) => this.#nodes.setPersistentVolume(volume),
      (_, name) => this.#nodes.deletePersistentVolume(name),
    );
    this.#followKind<Ingress>(
      cache.kind('ingress'),
      (ingress) => this.#nodes.setIngress(ingress),
      (namespace, name) => this.#nodes.deleteIngress(namespace, name),
    );
    this.#followKind<VolumeAttachment>(
      cache.kind('volumeattachments'),
      (attachment) => this.#nodes.setVolumeAttachment(attachment),
      (_, name) => this.#nodes.deleteVolumeAttachment(name),
    );
    this.#followKind<ResourceSlice>(
      cache.kind('resourceslices'),
      (slice) => this.#nodes.setResourceSlice(slice),
      (_, name) => this.#nodes.deleteResourceSlice(name),
    );
  }

  #followKind<T extends KubeObject>(
    kind: KindCache,
    set: (object: Readonly<T>) => void,
    remove: (namespace: string, name: string) => void,
  ): void {
    const present = new Map<string, readonly [string, string]>();
    const begin = (): void => {
      const gone = new Map(present);
      present.clear();
      for (const object of kind) {
        set(object.parse<T>());
        present.set(object.key, [object.namespace, object.name]);
        gone.delete(object.key);
      }
      for (const [namespace, name] of gone.values()) remove(namespace, name);
      kind.subscribe(
        {
          deliver: (batch) => {
            for (const event of batch.events) {
              const { object } = event;
              if (event.type === 'DELETED') {
                present.delete(object.key);
                remove(object.namespace, object.name);
              } else {
                present.set(object.key, [object.namespace, object.name]);
                set(object.peek<T>());
              }
            }
          },
          reset: begin,
        },
        undefined,
        0,
      );
    };
    begin();
  }

  /** Throws 'Forbidden' with upstream's wording if the action is not allowed. */
  require(user: UserInfo, action: Action): void {
    const decision = this.decide(user, action);
    if (!decision.allowed) throw refusal(user, action, decision);
  }

  allows(user: UserInfo, action: Action): boolean {
    return this.decide(user, action).allowed;
  }

  /** Throws or rejects with 'Forbidden' for the first action that is not allowed. */
  requireEach(user: UserInfo, actions: readonly Action[]): void | Promise<void> {
    const decisions = actions.map((action) => this.authorize(user, action));
    const check = (decided: readonly Decision[]): void => {
      for (const [index, decision] of decided.entries()) {
        if (!decision.allowed) throw refusal(user, actions[index] as Action, decision);
      }
    };
    if (decisions.some((each) => each instanceof Promise)) return Promise.all(decisions).then(check);
    return check(decisions as Decision[]);
  }

  /** Like `decide`, but also calls authorization webhooks. */
  authorize(user: UserInfo, action: Action): Decision | Promise<Decision> {
    const chain = this.#chain;
    if (!this.#remote) return this.decide(user, action);
    const outside = scopeDenial(user, action, this.rbac);
    if (outside !== undefined) return outside;
    if (user.groups.includes(PRIVILEGED_GROUP)) return ALLOWED;
    return this.#decideFrom(chain, 0, [], user, action);
  }

  #decideFrom(
    chain: readonly Link[],
    first: number,
    before: readonly Decision[],
    user: UserInfo,
    action: Action,
  ): Decision | Promise<Decision> {
    const decisions = [...before];
    for (const [at, link] of chain.entries()) {
      if (at < first) continue;
      const opinion =
        link.type === 'Webhook' ? link.client.authorize(user, action) : this.#decideBy(link.type, user, action);
      if (opinion instanceof Promise) {
        return opinion.then((decision) =>
          settles(link, decision) ? decision : this.#decideFrom(chain, at + 1, [...decisions, decision], user, action),
        );
      }
      if (opinion === undefined) continue;
      if (settles(link, opinion)) return opinion;
      decisions.push(opinion);
    }
    return undecided(decisions);
  }

  /**
   * Returns the first decision that allows or denies. If no authorizer decides, denies with the reasons of all
   * authorizers. Runs only built-in authorizers, no webhooks.
   */
  decide(user: UserInfo, action: Action): Decision {
    const outside = scopeDenial(user, action, this.rbac);
    if (outside !== undefined) return outside;
    if (user.groups.includes(PRIVILEGED_GROUP)) return ALLOWED;
    const decisions: Decision[] = [];
    for (const link of this.#chain) {
      if (link.type === 'Webhook') continue;
      const decision = this.#decideBy(link.type, user, action);
      if (decision === undefined) continue;
      if (settles(link, decision)) return decision;
      decisions.push(decision);
    }
    return undecided(decisions);
  }

  #decideBy(mode: Exclude<AuthorizationMode, 'Webhook'>, user: UserInfo, action: Action): Decision | undefined {
    switch (mode) {
      case 'Node':
        return this.#nodes.authorize(user, action);
      case 'RBAC':
        return this.rbac.authorize(user, action);
      case 'AlwaysAllow':
        return ALLOWED;
      case 'AlwaysDeny':
        return FORBIDDEN;
      default:
        return mode satisfies never;
    }
  }

  /** Like `requireRequest`, but also calls `decided` with the decision. */
  requireRecorded(user: UserInfo, info: RequestInfo, decided: (decision: Decision) => void): void | Promise<void> {
    const action = actionOf(info);
    const settle = (decision: Decision): void => {
      decided(decision);
      if (!decision.allowed) throw refusal(user, action, decision);
    };
    const decision = this.authorize(user, action);
    return decision instanceof Promise ? decision.then(settle) : settle(decision);
  }

  /**
   * Throws or rejects with 'Forbidden' if the request is not allowed. This is the hot path and caches allowed requests.
   */
  requireRequest(user: UserInfo, info: RequestInfo): void | Promise<void> {
    // Webhook decisions have their own cache, and a webhook that comes before RBAC must not be skipped.
    const chain = this.#chain;
    if (this.#remote || isScoped(user)) return this.requireEach(user, [actionOf(info)]);
    let remembered = this.#remembered.get(user);
    if (remembered?.generation !== this.rbac.generation || remembered.chain !== chain) {
      const decisions = chain.find(({ type }) => type === 'RBAC')?.decisions ?? { allowed: 0, denied: 0 };
      remembered = { generation: this.rbac.generation, chain, decisions, allowed: new Set(), requests: new Set() };
      this.#remembered.set(user, remembered);
    }
    if (remembered.requests.has(info)) {
      remembered.decisions.allowed += 1;
      return;
    }
    const key = info.resource
      ? [info.verb, info.group, info.plural, info.subresource, info.namespace, info.name].join('\0')
      : `${info.verb} ${info.path}`;
    if (remembered.allowed.has(key)) {
      remembered.decisions.allowed += 1;
      if (info.query.size === 0) note(remembered.requests, info);
      return;
    }
    const action = actionOf(info);
    if (!chain.some(({ type }) => type === 'RBAC') || !this.rbac.authorize(user, action).allowed) {
      // Permissions of a node change with its pods, so they are never cached.
      const decision = this.decide(user, action);
      if (!decision.allowed) throw refusal(user, action, decision);
      return;
    }
    remembered.decisions.allowed += 1;
    note(remembered.allowed, key);
  }
}

function note<T>(allowed: Set<T>, what: T): void {
  if (allowed.size >= MAX_DECISIONS_PER_USER) allowed.clear();
  allowed.add(what);
}

export function actionOf(info: RequestInfo): Action {
  if (!info.resource) return { verb: info.verb, path: info.path };
  const { verb, group, version, plural, subresource, namespace, name, query } = info;
  const action = { verb, group, version, resource: plural, subresource, namespace, name };
  return query.size === 0
    ? action
    : { ...action, ...selectorsOf(verb, query.get('fieldSelector'), query.get('labelSelector')) };
}

/** Counts a decision and reports whether it is final, so that no further authorizer runs. */
function settles({ decisions }: Link, { allowed, denied }: Decision): boolean {
  if (allowed) decisions.allowed += 1;
  else if (denied === true) decisions.denied += 1;
  else return false;
  return true;
}

/** The combined denial of all authorizers. Source: k8s.io/apiserver/pkg/authorization/union. */
function undecided(decisions: readonly Decision[]): Decision {
  const reason = decisions.flatMap((each) => (each.reason === '' ? [] : [each.reason])).join('\n');
  const errors = decisions.flatMap(({ error }) => (error === undefined ? [] : [error]));
  if (errors.length === 0) return { allowed: false, reason };
  return { allowed: false, reason, error: errors.length === 1 ? (errors[0] as string) : `[${errors.join(', ')}]` };
}

/** Error for a denied action. As upstream, an authorizer's error is reported instead of the denial. */
function refusal(user: UserInfo, action: Action, { reason, error }: Decision): ApiError {
  return error === undefined
    ? forbiddenError(user, action, reason)
    : new ApiError('InternalError', `Internal error occurred: ${error}`);
}

export function forbiddenError(user: UserInfo, action: Action, reason: string): ApiError {
  const tail = reason === '' ? '' : `: ${reason}`;
  const denial = describeDenial(user, action);
  if ('path' in action) return new ApiError('Forbidden', `forbidden: ${denial}${tail}`);
  const subject = action.group === '' ? action.resource : `${action.resource}.${action.group}`;
  const named = action.name === '' ? '' : ` "${action.name}"`;
  return new ApiError('Forbidden', `${subject}${named} is forbidden: ${denial}${tail}`, {
    ...(action.name === '' ? {} : { name: action.name }),
    ...(action.group === '' ? {} : { group: action.group }),
    kind: action.resource,
  });
}
