/**
 * Selection of the built-in groups, versions and resources that are served. Source: `--runtime-config` of
 * kube-apiserver; k8s.io/apiserver/pkg/server/resourceconfig and …/server/storage `ResourceConfig`.
 */
import type { KindDefinition } from './definition.ts';
import { isUpstreamDefault } from './upstream.ts';

/** Settings by name, for example `api/beta`, `apps/v1`, `apps/v1/deployments`, `v1`. */
export type RuntimeConfig = ReadonlyMap<string, boolean>;

/** Settings for stability levels in the order of evaluation, from the widest. Each setting overrides earlier ones. */
const STAGES: readonly (readonly [string, RegExp])[] = [
  ['api/all', /^/],
  ['api/ga', /^v\d+$/],
  ['api/beta', /^v\d+beta\d+$/],
  ['api/alpha', /^v\d+alpha\d+$/],
];

/** Names that select by stability level instead of by group. */
export const STAGE_NAMES: readonly string[] = STAGES.map(([name]) => name);

interface Place {
  readonly group: string;
  readonly version: string;
  readonly resource?: string;
}

/**
 * Parses a name that is not in STAGE_NAMES; undefined if it is malformed. The core group is written `v1`, `/v1` or
 * `api/v1`.
 */
export function placeOf(name: string): Place | undefined {
  const parts = name.replace(/^(?:api)?\/(?=v1(?:\/|$))/, '').split('/');
  if (parts[0] === 'v1') parts.unshift('');
  const [group, version, resource, ...more] = parts;
  if (group === undefined || version === undefined || version === '' || more.length > 0 || resource === '')
    return undefined;
  return { group, version, ...(resource === undefined ? {} : { resource }) };
}

export function isKnown(kinds: readonly KindDefinition[], { group, version, resource }: Place): boolean {
  return kinds.some(
    (kind) =>
      (resource === undefined || kind.plural === resource) &&
      [kind, ...(kind.aliases ?? [])].some((each) => each.group === group && each.version === version),
  );
}

/**
 * Removes versions that are not served. Without settings, versions that are off by default are removed. `upstreamOnly`:
 * also remove versions that kube-apiserver does not have.
 */
export function switchVersions(
  kinds: readonly KindDefinition[],
  config: RuntimeConfig,
  upstreamOnly = false,
): readonly KindDefinition[] {
  const places = [...config].flatMap(([name, on]) => {
    const place = STAGE_NAMES.includes(name) ? undefined : placeOf(name);
    return place === undefined ? [] : [{ ...place, on }];
  });
  const isServed = (group: string, version: string, { plural, offByDefault }: KindDefinition): boolean => {
    const usual = upstreamOnly ? isUpstreamDefault(group, version) : offByDefault !== true;
    if (usual === undefined) return false;
    const here = places.filter((each) => each.group === group && each.version === version);
    const own =
      here.findLast((each) => each.resource === plural) ?? here.findLast((each) => each.resource === undefined);
    if (own !== undefined) return own.on;
    const stage = STAGES.findLast(([name, pattern]) => config.has(name) && pattern.test(version));
    return stage === undefined ? usual : config.get(stage[0]) === true;
  };
  return kinds.map((kind) => {
    const unserved = [kind, ...(kind.aliases ?? [])]
      .filter(({ group, version }) => !isServed(group, version, kind))
      .map(({ group, version }) => `${group}/${version}`);
    return unserved.length === 0 ? kind : { ...kind, unserved: new Set(unserved) };
  });
}
