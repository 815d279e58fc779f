/**
 * Warnings for pods and pod templates: fields without effect, and values that probably do not mean what the author
 * expects. Source: k8s.io/kubernetes/pkg/api/pod/warnings.go, pkg/api/node/util.go.
 */

import { labelValueErrors } from '../../../base/names.ts';
import { canonicalQuantity, tryParseQuantity } from '../../../base/quantity.ts';
import type {
  Container,
  ContainerPort,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  PodTemplateSpec,
} from '../../generated/core/v1.ts';
import type { ObjectMeta } from '../../generated/meta/v1.ts';
import { addressWarnings } from '../../validation/address-warnings.ts';
import { claimWarnings } from '../../volumes/warnings.ts';
import { APP_ARMOR, containersWithPath, SECCOMP_CONTAINER, SECCOMP_POD } from '../annotations.ts';
import { overlapWarnings } from '../containers/overlaps.ts';

/** Upper bound for warnings in one response, because they are sent as headers. */
const MAX_WARNINGS = 32;

const ANNOTATIONS: Readonly<Record<string, string>> = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
};
const VOLUMES: Readonly<Record<string, string>> = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};
/** Names in upstream's warnings that differ from the field names. */
const VOLUME_NAMES: Readonly<Record<string, string>> = { storageos: 'storageOS' };
const NODE_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods': 'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
};

export const deprecatedLabel = (key: string): string | undefined =>
  Object.hasOwn(NODE_LABELS, key) ? NODE_LABELS[key] : undefined;

/** Returns at most MAX_WARNINGS warnings for a template at `path`. For a pod, the path is empty. */
export function templateWarnings(template: PodTemplateSpec | undefined, path: string): string[] {
  return warningsOf(template?.spec, template?.metadata, path).take(MAX_WARNINGS).toArray();
}

function* warningsOf(spec: PodSpec | undefined, metadata: ObjectMeta | undefined, path: string): Generator<string> {
  if (spec === undefined) return;
  const at = path === '' ? 'spec' : `${path}.spec`;
  const annotations = path === '' ? 'metadata.annotations' : `${path}.metadata.annotations`;
  const given = metadata?.annotations ?? {};
  yield* placementWarnings(spec, at);
  for (const [key, why] of Object.entries(ANNOTATIONS)) {
    if (Object.hasOwn(given, key)) yield `${annotations}[${key}]: ${why}`;
  }
  yield* volumeWarnings(spec, at);
  yield* referenceWarnings(spec, at);
  yield* fractions(spec.overhead, `${at}.overhead`);
  if (spec.securityContext?.seccompProfile === undefined && Object.hasOwn(given, SECCOMP_POD)) {
    yield `${annotations}[${SECCOMP_POD}]: non-functional in v1.27+; use the "seccompProfile" field instead`;
  }
  for (const [container, place] of containersWithPath(spec, at)) {
    const seccomp = `${SECCOMP_CONTAINER}${container.name}`;
    if (container.securityContext?.seccompProfile === undefined && Object.hasOwn(given, seccomp)) {
      yield `${annotations}[${seccomp}]: non-functional in v1.27+; use the "seccompProfile" field instead`;
    }
    const appArmor = `${APP_ARMOR}${container.name}`;
    const field = container.securityContext?.appArmorProfile ?? spec.securityContext?.appArmorProfile;
    if (path !== '' && field === undefined && Object.hasOwn(given, appArmor)) {
      yield `${annotations}[${appArmor}]: deprecated since v1.30; use the "appArmorProfile" field instead`;
    }
    yield* containerWarnings(container as Container, place);
  }
  yield* portWarnings(spec, at);
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    yield `${at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`;
  }
  yield* affinityWarnings(spec, `${at}.affinity`);
}

function* placementWarnings(spec: PodSpec, at: string): Generator<string> {
  for (const key of Object.keys(spec.nodeSelector ?? {})) {
    const why = deprecatedLabel(key);
    if (why !== undefined) yield `${at}.nodeSelector[${key}]: ${why}`;
  }
  const node = spec.affinity?.nodeAffinity;
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const place = `${at}.affinity.nodeAffinity`;
  for (const [index, term] of (node?.[required]?.nodeSelectorTerms ?? []).entries()) {
    yield* nodeTermWarnings(term, `${place}.${required}.nodeSelectorTerms[${index}]`, false);
  }
  for (const [index, { preference }] of (node?.[preferred] ?? []).entries()) {
    yield* nodeTermWarnings(preference ?? {}, `${place}.${preferred}[${index}].preference`, true);
  }
  for (const [index, { topologyKey = '', labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const why = deprecatedLabel(topologyKey);
    const constraint = `${at}.topologySpreadConstraints[${index}]`;
    if (why !== undefined) yield `${constraint}.topologyKey: ${topologyKey} is ${why}`;
    if (labelSelector === undefined) {
      yield `${constraint}.labelSelector: a null labelSelector results in matching no pod`;
    }
  }
}

/**
 * Warnings about a node selector term of a pod or of another object, for example a volume. `values`: also warn about
 * invalid label values; set for terms whose values are not validated.
 */
export function* nodeTermWarnings(term: NodeSelectorTerm, at: string, values: boolean): Generator<string> {
  for (const [index, expression] of (term.matchExpressions ?? []).entries()) {
    const { key = '' } = expression;
    const place = `${at}.matchExpressions[${index}]`;
    const why = deprecatedLabel(key);
    if (why !== undefined) yield `${place}.key: ${key} is ${why}`;
    if (!values) continue;
    for (const [position, value] of (expression.values ?? []).entries()) {
      for (const wrong of labelValueErrors(value)) yield `${place}.values[${position}]: ${value} is invalid, ${wrong}`;
    }
  }
}

function* volumeWarnings(spec: PodSpec, at: string): Generator<string> {
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    const place = `${at}.volumes[${index}]`;
    for (const [field, why] of Object.entries(VOLUMES)) {
      if ((volume as Record<string, unknown>)[field] === undefined) continue;
      yield `${place}.${VOLUME_NAMES[field] ?? field}: ${why}`;
    }
    const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
    if (claim !== undefined) yield* claimWarnings(claim, `${place}.ephemeral.volumeClaimTemplate.spec`);
  }
  yield* overlapWarnings(spec.volumes ?? []);
}

function* referenceWarnings(spec: PodSpec, at: string): Generator<string> {
  const aliases = new Set<string>();
  for (const [index, { ip = '' }] of (spec.hostAliases ?? []).entries()) {
    if (aliases.has(ip)) yield `${at}.hostAliases[${index}].ip: duplicate ip ${JSON.stringify(ip)}`;
    aliases.add(ip);
    yield* addressWarnings(ip, `${at}.hostAliases[${index}].ip`);
  }
  for (const [index, server] of (spec.dnsConfig?.nameservers ?? []).entries()) {
    yield* addressWarnings(server, `${at}.dnsConfig.nameservers[${index}]`);
  }
  const secrets = new Set<string>();
  for (const [index, { name = '' }] of (spec.imagePullSecrets ?? []).entries()) {
    if (secrets.has(name)) yield `${at}.imagePullSecrets[${index}].name: duplicate name ${JSON.stringify(name)}`;
    secrets.add(name);
  }
  for (const [index, { name = '' }] of (spec.imagePullSecrets ?? []).entries()) {
    if (name === '') yield `${at}.imagePullSecrets[${index}].name: invalid empty name ""`;
  }
}

const WHOLE_BYTES = ['memory', 'ephemeral-storage'];

function* fractions(amounts: Readonly<Record<string, string>> | undefined, at: string): Generator<string> {
  for (const name of WHOLE_BYTES) {
    const text = amounts?.[name];
    const quantity = text === undefined ? undefined : tryParseQuantity(text);
    if (text === undefined || quantity === undefined || quantity.nanos % 1_000_000_000n === 0n) continue;
    yield `${at}[${name}]: fractional byte value ${JSON.stringify(canonicalQuantity(text))} is invalid, must be an integer`;
  }
}

function* containerWarnings(container: Container, at: string): Generator<string> {
  yield* fractions(container.resources?.limits, `${at}.resources.limits`);
  yield* fractions(container.resources?.requests, `${at}.resources.requests`);
  const seen = new Set<string>();
  for (const [index, { name, value = '', valueFrom }] of (container.env ?? []).entries()) {
    // `X=a` followed by `X=$(X):b` extends the first value instead of hiding it.
    const adds = valueFrom === undefined && value !== `$(${name})` && value.includes(`$(${name})`);
    if (seen.has(name) && !adds) {
      yield `${at}.env[${index}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`;
    }
    seen.add(name);
  }
}

/** Upper bound for comparisons of ports with the same number. */
const MAX_COMPARED = 16;

function* portWarnings(spec: PodSpec, at: string): Generator<string> {
  const known = new Map<string, { readonly place: string; readonly port: ContainerPort }[]>();
  for (const [container, path] of containersWithPath(spec, at)) {
    for (const [index, port] of ((container as Container).ports ?? []).entries()) {
      const place = `${path}.ports[${index}]`;
      const { name = '', hostIP = '', hostPort = 0, containerPort = 0, protocol = '' } = port;
      if (hostIP !== '' && hostPort === 0) {
        const shown = `{Name:${name} HostPort:${hostPort} ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`;
        yield `${place}: hostIP set without hostPort: ${shown}`;
      }
      const others = known.get(`${containerPort}/${protocol}`) ?? [];
      for (const other of others) {
        const [otherIp, otherPort] = [other.port.hostIP ?? '', other.port.hostPort ?? 0];
        if (hostIP === otherIp && hostPort === otherPort)
          yield `${place}: duplicate port definition with ${other.place}`;
        else if (hostPort === 0 || otherPort === 0) yield `${place}: overlapping port definition with ${other.place}`;
        else if (hostPort === otherPort && (hostIP === '') !== (otherIp === '')) {
          yield `${place}: dangerously ambiguous port definition with ${other.place}`;
        }
      }
      if (others.length < MAX_COMPARED) others.push({ place, port });
      known.set(`${containerPort}/${protocol}`, others);
    }
  }
}

function* affinityWarnings(spec: PodSpec, at: string): Generator<string> {
  const unselective = (term: PodAffinityTerm | undefined): boolean => term?.labelSelector === undefined;
  const why = 'a null labelSelector results in matching no pod';
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const affinity = spec.affinity?.[kind];
    for (const [index, term] of (affinity?.[required] ?? []).entries()) {
      if (unselective(term)) yield `${at}.${kind}.${required}[${index}].labelSelector: ${why}`;
    }
    for (const [index, { podAffinityTerm }] of (affinity?.[preferred] ?? []).entries()) {
      if (unselective(podAffinityTerm))
        yield `${at}.${kind}.${preferred}[${index}].podAffinityTerm.labelSelector: ${why}`;
    }
  }
}
