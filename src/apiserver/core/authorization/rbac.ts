/** RBAC authorizer: indexes roles and bindings, and decides requests from memory. */
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  RoleRef,
  Subject,
} from '../../../api/generated/rbac/v1.ts';
import { CompiledRules } from './rules.ts';
import { type Action, type Decision, isPathAction, PRIVILEGED_GROUP, type UserInfo } from './types.ts';

/** Rules of a user in a namespace, for SelfSubjectRulesReview and for escalation checks. */
export interface EffectiveRules {
  readonly resourceRules: readonly PolicyRule[];
  readonly nonResourceRules: readonly PolicyRule[];
  /** Bindings that name a missing role, so that the result may be incomplete. */
  readonly errors: readonly string[];
}

/** Subjects that may perform an action. `users` contains service accounts by their user names. */
export interface AllowedSubjects {
  readonly users: readonly string[];
  readonly groups: readonly string[];
  /** Bindings that name a missing role, so that the result may be incomplete. */
  readonly errors: readonly string[];
}

/**
 * RBAC over a given set of roles and bindings. Setting an object replaces the object of the same name. A decision
 * evaluates only the bindings of the user and its groups.
 */
export interface RbacAuthorizer {
  setClusterRole(role: ClusterRole): void;
  deleteClusterRole(name: string): void;
  setRole(role: Role): void;
  deleteRole(namespace: string, name: string): void;
  setClusterRoleBinding(binding: ClusterRoleBinding): void;
  deleteClusterRoleBinding(name: string): void;
  setRoleBinding(binding: RoleBinding): void;
  deleteRoleBinding(namespace: string, name: string): void;
  /** Changes whenever a decision may have changed. Cached decisions are valid while `generation` is unchanged. */
  readonly generation: number;
  authorize(user: UserInfo, action: Action): Decision;
  /** Rules of the user from cluster role bindings and from role bindings in `namespace`. '': no role bindings. */
  rulesFor(user: UserInfo, namespace: string): EffectiveRules;
  /** Subjects whose roles allow the action, unordered. Members of the privileged group are not included. */
  subjectsAllowed(action: Action): AllowedSubjects;
  /**
   * Rules that a binding to `ref` in `namespace` ('' for a cluster role binding) grants. Undefined if the role does not
   * exist.
   */
  rulesOf(ref: RoleRef, namespace: string): readonly PolicyRule[] | undefined;
}

interface Grant {
  /** Text for messages: `ClusterRoleBinding "name"` or `RoleBinding "name/namespace"`. */
  readonly binding: string;
  readonly subject: string;
  readonly ref: RoleRef;
  /** Namespace of the role binding. '' for a cluster role binding. */
  readonly namespace: string;
}

/** Grants of one namespace, or of the cluster, by subject. */
interface Scope {
  readonly byUser: Map<string, Set<Grant>>;
  readonly byGroup: Map<string, Set<Grant>>;
}

interface KnownBinding {
  readonly identity: string;
  readonly grants: readonly { readonly table: 'byUser' | 'byGroup'; readonly who: string; readonly grant: Grant }[];
}

interface KnownRole {
  readonly identity: string;
  readonly compiled: CompiledRules;
}

const DENIED: Decision = { allowed: false, reason: '' };

export function createRbacAuthorizer(): RbacAuthorizer {
  return new IndexedRbac();
}

class IndexedRbac implements RbacAuthorizer {
  /** Known roles. The key is `name` for cluster roles and `namespace/name` for roles. */
  readonly #roles = new Map<string, KnownRole>();
  readonly #bindings = new Map<string, KnownBinding>();
  readonly #scopes = new Map<string, Scope>();
  #generation = 0;

  get generation(): number {
    return this.#generation;
  }

  setClusterRole(role: ClusterRole): void {
    this.#setRole(role.metadata?.name ?? '', role.rules);
  }

  deleteClusterRole(name: string): void {
    this.#deleteRole(name);
  }

  setRole(role: Role): void {
    this.#setRole(`${role.metadata?.namespace}/${role.metadata?.name}`, role.rules);
  }

  deleteRole(namespace: string, name: string): void {
    this.#deleteRole(`${namespace}/${name}`);
  }

  setClusterRoleBinding(binding: ClusterRoleBinding): void {
    const name = binding.metadata?.name ?? '';
    this.#setBinding(name, '', `ClusterRoleBinding ${JSON.stringify(name)}`, binding);
  }

  deleteClusterRoleBinding(name: string): void {
    this.#deleteBinding(name, '');
  }

  setRoleBinding(binding: RoleBinding): void {
    const { name = '', namespace = '' } = binding.metadata ?? {};
    this.#setBinding(
      `${namespace}/${name}`,
      namespace,
      `RoleBinding ${JSON.stringify(`${name}/${namespace}`)}`,
      binding,
    );
  }

  deleteRoleBinding(namespace: string, name: string): void {
    this.#deleteBinding(`${namespace}/${name}`, namespace);
  }

  authorize(user: UserInfo, action: Action): Decision {
    if (user.groups.includes(PRIVILEGED_GROUP)) return { allowed: true, reason: '' };
    const path = isPathAction(action);
    let missing: string | undefined;
    for (const grant of this.#grantsOf(user, path ? '' : action.namespace)) {
      const role = this.#roleOf(grant.ref, grant.namespace);
      if (role === undefined) missing ??= `RBAC: ${describeMissing(grant.ref)}`;
      else if (path ? role.compiled.allowsPath(action) : role.compiled.allowsResource(action)) {
        const reason = `RBAC: allowed by ${grant.binding} of ${grant.ref.kind} ${JSON.stringify(grant.ref.name)} to ${grant.subject}`;
        return { allowed: true, reason };
      }
    }
    return missing === undefined ? DENIED : { allowed: false, reason: missing };
  }

  rulesFor(user: UserInfo, namespace: string): EffectiveRules {
    const resourceRules: PolicyRule[] = [];
    const nonResourceRules: PolicyRule[] = [];
    const errors = new Set<string>();
    // Roles bound both to the user and to a group count once. Cluster role bindings come first because they grant more.
    const seen = new Set<CompiledRules>();
    for (const grant of this.#grantsOf(user, namespace)) {
      const role = this.#roleOf(grant.ref, grant.namespace);
      if (role === undefined) {
        errors.add(describeMissing(grant.ref));
        continue;
      }
      if (seen.has(role.compiled)) continue;
      seen.add(role.compiled);
      for (const rule of role.compiled.rules) {
        const { resources, nonResourceURLs, ...rest } = rule;
        if ((resources ?? []).length > 0) resourceRules.push({ ...rest, resources: resources ?? [] });
        // Paths have no namespace, so a role binding never grants access to them.
        if ((nonResourceURLs ?? []).length > 0 && grant.namespace === '') {
          nonResourceRules.push({ verbs: rule.verbs, nonResourceURLs: nonResourceURLs ?? [] });
        }
      }
    }
    return { resourceRules, nonResourceRules, errors: [...errors] };
  }

  subjectsAllowed(action: Action): AllowedSubjects {
    const errors = new Set<string>();
    const allows = ({ ref, namespace }: Grant): boolean => {
      const role = this.#roleOf(ref, namespace);
      if (role === undefined) {
        errors.add(describeMissing(ref));
        return false;
      }
      return isPathAction(action) ? role.compiled.allowsPath(action) : role.compiled.allowsResource(action);
    };
    const found = { byUser: new Set<string>(), byGroup: new Set<string>() };
    const namespace = isPathAction(action) ? '' : action.namespace;
    for (const scope of namespace === '' ? [''] : ['', namespace]) {
      for (const table of ['byUser', 'byGroup'] as const)
        for (const [who, grants] of this.#scopes.get(scope)?.[table] ?? [])
          if (!found[table].has(who) && [...grants].some(allows)) found[table].add(who);
    }
    return { users: [...found.byUser], groups: [...found.byGroup], errors: [...errors] };
  }

  rulesOf(ref: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    return this.#roleOf(ref, namespace)?.compiled.rules;
  }

  *#grantsOf(user: UserInfo, namespace: string): Generator<Grant> {
    for (const scope of namespace === '' ? [''] : ['', namespace]) {
      const grants = this.#scopes.get(scope);
      if (grants === undefined) continue;
      yield* grants.byUser.get(user.name) ?? [];
      for (const group of user.groups) yield* grants.byGroup.get(group) ?? [];
    }
  }

  #roleOf(ref: RoleRef, namespace: string): KnownRole | undefined {
    if (ref.kind === 'ClusterRole') return this.#roles.get(ref.name);
    return ref.kind === 'Role' && namespace !== '' ? this.#roles.get(`${namespace}/${ref.name}`) : undefined;
  }

  #setRole(key: string, rules: readonly PolicyRule[] | undefined): void {
    const identity = JSON.stringify(rules ?? []);
    if (this.#roles.get(key)?.identity === identity) return;
    this.#roles.set(key, { identity, compiled: new CompiledRules(rules ?? []) });
    this.#generation++;
  }

  #deleteRole(key: string): void {
    if (this.#roles.delete(key)) this.#generation++;
  }

  #setBinding(
    key: string,
    namespace: string,
    description: string,
    binding: { readonly roleRef: RoleRef; readonly subjects?: readonly Subject[] },
  ): void {
    const identity = JSON.stringify([binding.roleRef, binding.subjects]);
    if (this.#bindings.get(key)?.identity === identity) return;
    this.#deleteBinding(key, namespace);
    const grants: KnownBinding['grants'][number][] = [];
    for (const subject of binding.subjects ?? []) {
      const target = targetOf(subject, namespace);
      if (target === undefined) continue;
      grants.push({
        ...target,
        grant: { binding: description, subject: describeSubject(subject, namespace), ref: binding.roleRef, namespace },
      });
    }
    this.#bindings.set(key, { identity, grants });
    const scope = this.#scopes.get(namespace) ?? { byUser: new Map(), byGroup: new Map() };
    this.#scopes.set(namespace, scope);
    for (const { table, who, grant } of grants) {
      const known = scope[table].get(who);
      if (known === undefined) scope[table].set(who, new Set([grant]));
      else known.add(grant);
    }
    this.#generation++;
  }

  #deleteBinding(key: string, namespace: string): void {
    const binding = this.#bindings.get(key);
    if (binding === undefined) return;
    this.#bindings.delete(key);
    const scope = this.#scopes.get(namespace);
    for (const { table, who, grant } of binding.grants) {
      const known = scope?.[table].get(who);
      known?.delete(grant);
      if (known?.size === 0) scope?.[table].delete(who);
    }
    if (scope !== undefined && scope.byUser.size === 0 && scope.byGroup.size === 0) this.#scopes.delete(namespace);
    this.#generation++;
  }
}

function targetOf(
  subject: Subject,
  bindingNamespace: string,
): { readonly table: 'byUser' | 'byGroup'; readonly who: string } | undefined {
  switch (subject.kind) {
    case 'User':
      return { table: 'byUser', who: subject.name };
    case 'Group':
      return { table: 'byGroup', who: subject.name };
    case 'ServiceAccount': {
      const namespace = subject.namespace ?? bindingNamespace;
      return namespace === ''
        ? undefined
        : { table: 'byUser', who: `system:serviceaccount:${namespace}:${subject.name}` };
    }
    default:
      return undefined;
  }
}

function describeSubject(subject: Subject, bindingNamespace: string): string {
  const name =
    subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace ?? bindingNamespace}` : subject.name;
  return `${subject.kind} ${JSON.stringify(name)}`;
}

function describeMissing(ref: RoleRef): string {
  return `${ref.kind.toLowerCase()}.rbac.authorization.k8s.io ${JSON.stringify(ref.name)} not found`;
}
