/** Who may do what: the pure authorizers, fed from the watch cache, with decisions kept per user until a role changes. */
import type { PersistentVolume, Pod } from 'kubernetes-types/core/v1';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-types/rbac/v1';
import type { VolumeAttachment } from 'kubernetes-types/storage/v1';
import type { ResourceSlice } from '../../../api/devices/types.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Log } from '../../../base/log.ts';
import { parseFieldSelector } from '../../../base/selector.ts';
import { createNodeAuthorizer } from '../../../core/authz/node.ts';
import { createRbacAuthorizer } from '../../../core/authz/rbac.ts';
import { type Action, type Decision, describeDenial, PRIVILEGED_GROUP } from '../../../core/authz/types.ts';
import type { AuthorizationMode, Authorizer } from '../config.ts';
import type { RequestInfo } from '../http/request-info.ts';
import type { KindCache } from '../watchcache/kind-cache.ts';
import type { WatchCache } from '../watchcache/watch-cache.ts';
import type { RemoteDeps } from '../webhooks/remote.ts';
import { AccessWebhookClient } from './access-webhook.ts';

const MAX_DECISIONS_PER_USER = 512;

interface Remembered {
  readonly generation: number;
  readonly chain: readonly Link[];
  readonly allowed: Set<string>;
  /** Of those the ones that come by a path that is remembered: found without putting a key together. */
  readonly requests: Set<RequestInfo>;
}

/** Somebody who is asked: in this server, or elsewhere. */
type Link =
  | { readonly type: Exclude<AuthorizationMode, 'Webhook'> }
  | { readonly type: 'Webhook'; readonly client: AccessWebhookClient };

export const DEFAULT_AUTHORIZERS: readonly Authorizer[] = [{ type: 'Node' }, { type: 'RBAC' }];
const FORBIDDEN: Decision = { allowed: false, reason: 'Everything is forbidden.' };
const ALLOWED: Decision = { allowed: true, reason: '' };

export class Authorization {
  readonly #configured: () => readonly Authorizer[];
  readonly #deps: RemoteDeps & { readonly log: Log };
  readonly rbac = createRbacAuthorizer();
  readonly #nodes = createNodeAuthorizer();
  readonly #remembered = new WeakMap<UserInfo, Remembered>();
  #authorizers: readonly Authorizer[] = [];
  #links: readonly Link[] = [];
  #remote = false;

  /** `configured`: the authorizers in the order they are asked; another list when that has changed. */
  constructor(configured: () => readonly Authorizer[], deps: RemoteDeps & { readonly log: Log }) {
    this.#configured = configured;
    this.#deps = deps;
  }

  /** Whether somebody elsewhere is asked too. */
  get asksOthers(): boolean {
    return this.#chain.some(({ type }) => type === 'Webhook');
  }

  get #chain(): readonly Link[] {
    const authorizers = this.#configured();
    if (authorizers !== this.#authorizers) {
      this.#authorizers = authorizers;
      this.#links = authorizers.map((each) =>
        each.type === 'Webhook' ? { type: each.type, client: new AccessWebhookClient(each.webhook, this.#deps) } : each,
      );
      this.#remote = authorizers.some(({ type }) => type === 'Webhook');
    }
    return this.#links;
  }

  /** Follows roles, bindings, pods, volumes and their attachments. Call after the cache has been loaded, and again whenever it was loaded anew. */
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
    set: (object: T) => void,
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
                set(object.parse<T>());
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

  /** Throws 'Forbidden', worded as upstream. */
  require(user: UserInfo, action: Action): void {
    const decision = this.decide(user, action);
    if (!decision.allowed) throw denied(user, action, decision.reason);
  }

  allows(user: UserInfo, action: Action): boolean {
    return this.decide(user, action).allowed;
  }

  /** Throws, or rejects with, 'Forbidden' for the first that is not allowed. */
  requireEach(user: UserInfo, actions: readonly Action[]): void | Promise<void> {
    const decisions = actions.map((action) => this.authorize(user, action));
    const check = (decided: readonly Decision[]): void => {
      for (const [index, decision] of decided.entries()) {
        if (!decision.allowed) throw denied(user, actions[index] as Action, decision.reason);
      }
    };
    if (decisions.some((each) => each instanceof Promise)) return Promise.all(decisions).then(check);
    return check(decisions as Decision[]);
  }

  /** As `decide`, with those asked who are elsewhere. */
  authorize(user: UserInfo, action: Action): Decision | Promise<Decision> {
    const chain = this.#chain;
    if (!this.#remote) return this.decide(user, action);
    if (user.groups.includes(PRIVILEGED_GROUP)) return ALLOWED;
    return this.#askFrom(chain, 0, [], user, action);
  }

  #askFrom(
    chain: readonly Link[],
    first: number,
    reasons: readonly string[],
    user: UserInfo,
    action: Action,
  ): Decision | Promise<Decision> {
    const heard = [...reasons];
    for (const [at, link] of chain.entries()) {
      if (at < first) continue;
      const opinion =
        link.type === 'Webhook' ? link.client.authorize(user, action) : this.#ask(link.type, user, action);
      if (opinion instanceof Promise) {
        return opinion.then((said) =>
          said.allowed || said.final ? said : this.#askFrom(chain, at + 1, [...heard, said.reason], user, action),
        );
      }
      if (opinion === undefined) continue;
      if (opinion.allowed || ('final' in opinion && opinion.final)) return opinion;
      heard.push(opinion.reason);
    }
    return { allowed: false, reason: heard.filter((reason) => reason !== '').join(', ') };
  }

  /** The first that allows counts; none of them: their reasons together. Of those that are here: a webhook is not asked. */
  decide(user: UserInfo, action: Action): Decision {
    if (user.groups.includes(PRIVILEGED_GROUP)) return ALLOWED;
    const reasons: string[] = [];
    for (const { type } of this.#chain) {
      if (type === 'Webhook') continue;
      const decision = this.#ask(type, user, action);
      if (decision?.allowed === true) return decision;
      if (decision !== undefined && decision.reason !== '') reasons.push(decision.reason);
    }
    return { allowed: false, reason: reasons.join(', ') };
  }

  #ask(mode: Exclude<AuthorizationMode, 'Webhook'>, user: UserInfo, action: Action): Decision | undefined {
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

  /** Whether a request may go on; the hot path, which remembers what it has allowed. */
  requireRequest(user: UserInfo, info: RequestInfo): void | Promise<void> {
    // Others' answers are kept by themselves, and come before what roles say when they are asked first.
    const chain = this.#chain;
    if (this.#remote) return this.requireEach(user, [actionOf(info)]);
    let remembered = this.#remembered.get(user);
    if (remembered?.generation !== this.rbac.generation || remembered.chain !== chain) {
      remembered = { generation: this.rbac.generation, chain, allowed: new Set(), requests: new Set() };
      this.#remembered.set(user, remembered);
    }
    if (remembered.requests.has(info)) return;
    const key = info.resource
      ? `${info.verb} ${info.group} ${info.plural} ${info.subresource} ${info.namespace} ${info.name}`
      : `${info.verb} ${info.path}`;
    if (remembered.allowed.has(key)) {
      if (info.query.size === 0) note(remembered.requests, info);
      return;
    }
    const action = actionOf(info);
    if (!chain.some(({ type }) => type === 'RBAC') || !this.rbac.authorize(user, action).allowed) {
      // A node's rights come and go with its pods: never remembered.
      const decision = this.decide(user, action);
      if (!decision.allowed) throw denied(user, action, decision.reason);
      return;
    }
    note(remembered.allowed, key);
  }
}

function note<T>(allowed: Set<T>, what: T): void {
  if (allowed.size >= MAX_DECISIONS_PER_USER) allowed.clear();
  allowed.add(what);
}

export function actionOf(info: RequestInfo): Action {
  if (!info.resource) return { verb: info.verb, path: info.path };
  const selector = info.query.get('fieldSelector');
  return {
    verb: info.verb,
    group: info.group,
    resource: info.plural,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name,
    ...(selector === null ? {} : { fieldEquals: fieldEquals(selector) }),
  };
}

function fieldEquals(selector: string): ReadonlyMap<string, string> {
  try {
    return new Map(
      parseFieldSelector(selector)
        .filter((term) => term.operator === '=')
        .map((term) => [term.field, term.value]),
    );
  } catch {
    return new Map();
  }
}

export function denied(user: UserInfo, action: Action, reason: string): ApiError {
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
