/** Inputs of the resolver: subscriptions, installed versions and catalogs, in order of preference. */

import type { KubeObject } from '../../../../api/meta/object.ts';
import type { ClusterServiceVersion, Subscription } from '../kinds/types.ts';
import { type Constraint, fieldsOf, listOf, readProperties } from './catalog/blobs.ts';
import type { Bundle, Catalog, CatalogPackage, Channel } from './catalog/catalog.ts';
import { channelNamed, installable, successors } from './catalog/graph.ts';
import { propertiesOf } from './catalog/properties.ts';
import { parseVersion } from './catalog/semver.ts';
import { componentLabel } from './names.ts';
import type { CandidateVersion, Leaf, Problem, Wanted } from './resolver.ts';

/** Annotation with the package and dependencies of an installed version. */
export const PROPERTIES_ANNOTATION = 'operatorframework.io/properties';

export interface VisibleCatalog {
  /** Key `namespace/name` of the CatalogSource. */
  readonly key: string;
  readonly priority: number;
  readonly catalog: Catalog;
}

export interface ResolverInput {
  readonly subscriptions: readonly Subscription[];
  /** Operator versions in the namespace, without copies from other namespaces. */
  readonly installed: readonly ClusterServiceVersion[];
  /** Names of the subscriptions whose operator version is still being installed or has failed, so it is not updated. */
  readonly held: ReadonlySet<string>;
  readonly catalogs: readonly VisibleCatalog[];
  /** Reason for each catalog that could not be read, by its key. */
  readonly unreadable: ReadonlyMap<string, string>;
  readonly rules: PropertyRules;
}

/** Evaluates CEL rules about the properties of operators. */
export interface PropertyRules {
  /** Whether the rule holds for `properties`. `of` is the owner of the properties, by which the result is cached. */
  holds(rule: string, of: object, properties: () => readonly unknown[]): boolean;
  /** Describes the error in the rule; undefined if the rule is valid. */
  mistakeIn(rule: string): string | undefined;
}

/** Member of a solution that is installed from a catalog, with its bundle. */
export interface Choice extends CandidateVersion {
  readonly bundle: Bundle;
  readonly replaces: string;
  readonly skips: readonly string[];
}

export const isChoice = (member: CandidateVersion): member is Choice => 'bundle' in member;

/** Operator version that the subscription has installed or is installing; undefined if there is none. */
export function currentOf(
  { spec, status }: Subscription,
  installed: readonly ClusterServiceVersion[],
): ClusterServiceVersion | undefined {
  for (const name of [status?.currentCSV, status?.installedCSV]) {
    const found = name === undefined ? undefined : installed.find((each) => each.metadata?.name === name);
    if (found !== undefined) return found;
  }
  // A subscription that was created after its operator adopts the installed operator version.
  return installed.find((each) => packageOf(each) === spec?.name && !isReplaced(each, installed));
}

/** Package of an installed operator version; empty if unknown. */
export const packageOf = (csv: ClusterServiceVersion): string => memberOf(csv, '').package;

/** Whether an install plan for the package of `csv`, in the namespace of `csv`, has created or updated the object. */
export function isComponentOf(csv: ClusterServiceVersion, { metadata }: KubeObject): boolean {
  const owner = packageOf(csv);
  return owner !== '' && metadata?.labels?.[componentLabel(owner, csv.metadata?.namespace ?? '')] !== undefined;
}

export function problemOf(situation: ResolverInput): Problem {
  const catalogs = [...situation.catalogs].sort(byPreference);
  const subscriptions = [...situation.subscriptions].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const followed = new Set<ClusterServiceVersion>();
  const wanted = subscriptions.map((each): Wanted => {
    const current = currentOf(each, situation.installed);
    if (current !== undefined) followed.add(current);
    return wantedBy(each, current, situation, catalogs);
  });
  const fixed = situation.installed.filter((each) => !followed.has(each) && !isReplaced(each, situation.installed));
  return {
    wanted,
    fixed: fixed.map((each) => memberOf(each, '', situation.rules)),
    candidates: (constraint, from) => candidatesFor(constraint, from, catalogs, situation.rules),
    mistakeIn: (rule) => situation.rules.mistakeIn(rule),
  };
}

const nameOf = ({ metadata }: Subscription): string => metadata?.name ?? '';

const byPreference = (a: VisibleCatalog, b: VisibleCatalog): number =>
  b.priority - a.priority || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

/** Whether another installed operator version replaces this one. The other version then counts as the installed one. */
const isReplaced = ({ metadata }: ClusterServiceVersion, all: readonly ClusterServiceVersion[]): boolean =>
  all.some(({ spec }) => spec?.replaces === metadata?.name);

function wantedBy(
  subscription: Subscription,
  current: ClusterServiceVersion | undefined,
  situation: ResolverInput,
  catalogs: readonly VisibleCatalog[],
): Wanted {
  const name = nameOf(subscription);
  const { spec = {} } = subscription;
  const owner = spec.name ?? '';
  const key = `${spec.sourceNamespace}/${spec.source}`;
  const stay = current === undefined ? [] : [memberOf(current, owner, situation.rules)];
  if (current !== undefined && situation.held.has(name)) return { name, options: stay, reason: '' };
  const source = catalogs.find((each) => each.key === key);
  const fail = (why: string): Wanted => ({ name, options: stay, reason: why });
  if (source === undefined)
    return fail(situation.unreadable.get(key) ?? `no catalog ${key} that subscription ${name} may use`);
  const found = source.catalog.packages.get(owner);
  if (found === undefined)
    return fail(`no operators found in package ${owner} in the catalog ${key} referenced by subscription ${name}`);
  const channel = channelNamed(found, spec.channel ?? '');
  if (channel === undefined)
    return fail(
      `no operators found in channel ${spec.channel} of package ${owner} ` +
        `in the catalog referenced by subscription ${name}`,
    );
  const bundles =
    current === undefined
      ? installable(found, channel, spec.startingCSV ?? '')
      : successors(found, channel, {
          name: current.metadata?.name ?? '',
          version: parseVersion(current.spec?.version ?? ''),
        });
  const replaced = current?.metadata?.name;
  return {
    name,
    options: [
      ...bundles.map((each) =>
        choiceOf({ owner: found, channel, bundle: each, catalog: key }, replaced, situation.rules),
      ),
      ...stay,
    ],
    reason:
      spec.startingCSV === undefined
        ? `no operators found in channel ${channel.name} of package ${owner}`
        : `no operators found with name ${spec.startingCSV} in channel ${channel.name} of package ${owner}`,
  };
}

/** A bundle in a channel of a catalog's package. */
interface Offer {
  readonly owner: CatalogPackage;
  readonly channel: Channel;
  readonly bundle: Bundle;
  readonly catalog: string;
}

function choiceOf(
  { owner, channel, bundle, catalog }: Offer,
  current: string | undefined,
  rules: PropertyRules,
): Choice {
  const entry = channel.entries.find((each) => each.name === bundle.name);
  const { name, version, provides, requires } = bundle;
  return {
    name,
    package: owner.name,
    version,
    provides,
    requires,
    catalog,
    channel: channel.name,
    installed: false,
    bundle,
    satisfies: (rule) => rules.holds(rule, bundle, () => propertiesOf(owner.name, bundle)),
    // The new version replaces the installed one, even if its channel entry names another version (`skips`,
    // `skipRange`).
    replaces: current ?? entry?.replaces ?? '',
    skips: entry?.skips ?? [],
  };
}

/** Member for an installed operator version. The properties annotation and the spec provide its fields. */
export function memberOf(csv: ClusterServiceVersion, owner: string, rules?: PropertyRules): CandidateVersion {
  const { name = '', annotations = {} } = csv.metadata ?? {};
  let requires: readonly Constraint[] = [];
  let named = owner;
  let annotated: unknown;
  try {
    annotated = fieldsOf(JSON.parse(annotations[PROPERTIES_ANNOTATION] ?? '{}'))['properties'];
    requires = readProperties(listOf(annotated), name, '').requires;
    named ||= String(
      fieldsOf(
        listOf(annotated)
          .map(fieldsOf)
          .find((each) => each['type'] === 'olm.package')?.['value'],
      )['packageName'] ?? '',
    );
  } catch {
    // The annotation is invalid, for example because an administrator has changed it, so it is ignored.
  }
  const owned = csv.spec?.customresourcedefinitions?.owned ?? [];
  const apis = csv.spec?.apiservicedefinitions?.owned ?? [];
  return {
    name,
    package: named,
    version: parseVersion(csv.spec?.version ?? ''),
    provides: [
      ...owned.map((each) => `${(each.name ?? '').split('.').slice(1).join('.')}/${each.version}/${each.kind}`),
      ...apis.map((each) => `${each.group}/${each.version}/${each.kind}`),
    ],
    requires,
    ...(rules === undefined ? {} : { satisfies: (rule: string) => rules.holds(rule, csv, () => listOf(annotated)) }),
    catalog: '',
    channel: '',
    installed: true,
  };
}

function* candidatesFor(
  constraint: Leaf,
  from: string,
  catalogs: readonly VisibleCatalog[],
  rules: PropertyRules,
): Generator<Choice> {
  const own = catalogs.filter((each) => each.key === from);
  for (const { key, catalog } of [...own, ...catalogs.filter((each) => each.key !== from)]) {
    const packages =
      constraint.type === 'package' ? [catalog.packages.get(constraint.name)] : [...catalog.packages.values()];
    for (const owner of packages) {
      if (owner === undefined || !mayProvide(owner, constraint)) continue;
      const channels = [
        ...owner.channels.filter((each) => each.name === owner.defaultChannel),
        ...owner.channels.filter((each) => each.name !== owner.defaultChannel),
      ];
      for (const channel of channels)
        for (const bundle of installable(owner, channel, ''))
          yield choiceOf({ owner, channel, bundle, catalog: key }, undefined, rules);
    }
  }
}

function mayProvide({ bundles }: CatalogPackage, constraint: Leaf): boolean {
  if (constraint.type !== 'gvk') return true;
  for (const { provides } of bundles.values()) if (provides.includes(constraint.gvk)) return true;
  return false;
}
