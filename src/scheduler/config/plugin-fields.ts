/** Arguments of scheduler plug-ins in `pluginConfig`. Source: k8s.io/kube-scheduler/config/v1. */
import type { NodeAffinity, TopologySpreadConstraint } from '../../api/generated/core/v1.ts';
import {
  boolean,
  type Cursor,
  dictionary,
  type Field,
  integer,
  list,
  object,
  oneOf,
  string,
} from '../../wire/strict-yaml.ts';
import type { PluginArgs, ScoringStrategy } from '../core/plugin-args.ts';
import { duration } from './extender-fields.ts';

const MIN_BINDING_MS = 1_000;
/** Maximum of a timeout in seconds. A larger value would exceed the range of a timer, which counts milliseconds. */
const MAX_BIND_SECONDS = 2_000_000;

const header = (kind: string) => ({ apiVersion: oneOf('kubescheduler.config.k8s.io/v1'), kind: oneOf(kind) });

const expression = object(
  {
    key: string(),
    operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'),
    values: list(string()),
  },
  ['key', 'operator'],
);
const term = object({ matchExpressions: list(expression), matchFields: list(expression) });
const nodeAffinity = object({
  requiredDuringSchedulingIgnoredDuringExecution: object({ nodeSelectorTerms: list(term) }, ['nodeSelectorTerms']),
  preferredDuringSchedulingIgnoredDuringExecution: list(
    object({ weight: integer(1, 100), preference: term }, ['weight', 'preference']),
  ),
}) as Field<NodeAffinity>;

/**
 * Default constraint of a profile. As in upstream, it cannot have a labelSelector, because the selectors of the pod's
 * services and controllers are used.
 */
const spreadConstraint = object(
  {
    maxSkew: integer(1, 1_000_000),
    topologyKey: string(),
    whenUnsatisfiable: oneOf('DoNotSchedule', 'ScheduleAnyway'),
    minDomains: integer(1, 1_000_000),
    nodeAffinityPolicy: oneOf('Honor', 'Ignore'),
    nodeTaintsPolicy: oneOf('Honor', 'Ignore'),
  },
  ['maxSkew', 'topologyKey', 'whenUnsatisfiable'],
) as Field<TopologySpreadConstraint>;

const resource = {
  parse: (at: Cursor) => {
    const { name, weight = 1 } = object({ name: string(), weight: integer(1, 100) }, ['name']).parse(at);
    return { name, weight };
  },
};

const shapePoint = object({ utilization: integer(0, 100), score: integer(0, 10) }, ['utilization', 'score']);

const scoringStrategy: Field<ScoringStrategy> = {
  parse: (at) => {
    const parsed = object({
      type: oneOf('LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio'),
      resources: list(resource),
      requestedToCapacityRatio: object({ shape: list(shapePoint) }, ['shape']),
    }).parse(at);
    const type = parsed.type ?? 'LeastAllocated';
    const shape = parsed.requestedToCapacityRatio?.shape ?? [];
    if (type === 'RequestedToCapacityRatio' && shape.length === 0) {
      at.fail('requestedToCapacityRatio.shape is missing; give at least one point');
    }
    shape.forEach((point, index) => {
      if (index > 0 && point.utilization <= (shape[index - 1]?.utilization ?? 0)) {
        at.fail(`requestedToCapacityRatio.shape[${index}].utilization must be greater than the one before`);
      }
    });
    const cpuAndMemory = ['cpu', 'memory'].map((name) => ({ name, weight: 1 }));
    return { type, shape, resources: parsed.resources ?? cpuAndMemory };
  },
};

type ArgsOf = (at: Cursor) => Partial<PluginArgs>;

/** Parsers of the arguments, by name of the plug-in. */
export const PLUGIN_ARGS: Readonly<Record<string, ArgsOf>> = {
  NodeResourcesFit: (at) => {
    const {
      ignoredResources,
      ignoredResourceGroups,
      scoringStrategy: strategy,
    } = object({
      ...header('NodeResourcesFitArgs'),
      ignoredResources: list(string()),
      ignoredResourceGroups: list(string()),
      scoringStrategy,
    }).parse(at);
    return {
      ...(ignoredResources === undefined ? {} : { ignoredResources }),
      ...(ignoredResourceGroups === undefined ? {} : { ignoredResourceGroups }),
      ...(strategy === undefined ? {} : { scoringStrategy: strategy }),
    };
  },
  NodeResourcesBalancedAllocation: (at) => {
    const shape = { ...header('NodeResourcesBalancedAllocationArgs'), resources: list(resource) };
    const { resources } = object(shape).parse(at);
    return resources === undefined ? {} : { balancedResources: resources };
  },
  InterPodAffinity: (at) => {
    const { hardPodAffinityWeight, ignorePreferredTermsOfExistingPods } = object({
      ...header('InterPodAffinityArgs'),
      hardPodAffinityWeight: integer(0, 100),
      ignorePreferredTermsOfExistingPods: boolean(),
    }).parse(at);
    return {
      ...(hardPodAffinityWeight === undefined ? {} : { hardPodAffinityWeight }),
      ...(ignorePreferredTermsOfExistingPods === undefined ? {} : { ignorePreferredTermsOfExistingPods }),
    };
  },
  NodeAffinity: (at) => {
    const { addedAffinity } = object({ ...header('NodeAffinityArgs'), addedAffinity: nodeAffinity }).parse(at);
    return { addedAffinity };
  },
  PodTopologySpread: (at) => {
    const { defaultConstraints, defaultingType = 'System' } = object({
      ...header('PodTopologySpreadArgs'),
      defaultConstraints: list(spreadConstraint),
      defaultingType: oneOf('System', 'List'),
    }).parse(at);
    if (defaultingType === 'List') return { defaultConstraints: defaultConstraints ?? [] };
    if (defaultConstraints !== undefined) at.fail('defaultConstraints: set defaultingType to List to use them');
    return {};
  },
  DynamicResources: (at) => {
    // filterTimeout has no effect, because the number of steps limits the search for devices, not the time.
    const { bindingTimeout } = object({
      ...header('DynamicResourcesArgs'),
      filterTimeout: duration,
      bindingTimeout: duration,
    }).parse(at);
    if (bindingTimeout === undefined) return {};
    if (bindingTimeout < MIN_BINDING_MS) at.fail('bindingTimeout must be at least 1 second');
    return { bindingTimeoutMs: bindingTimeout };
  },
  VolumeBinding: (at) => {
    const { bindTimeoutSeconds } = object({
      ...header('VolumeBindingArgs'),
      bindTimeoutSeconds: integer(0, MAX_BIND_SECONDS),
    }).parse(at);
    return bindTimeoutSeconds === undefined ? {} : { bindTimeoutSeconds };
  },
  DefaultPreemption: (at) => {
    const { minCandidateNodesPercentage, minCandidateNodesAbsolute } = object({
      ...header('DefaultPreemptionArgs'),
      minCandidateNodesPercentage: integer(0, 100),
      minCandidateNodesAbsolute: integer(0, 1_000_000),
    }).parse(at);
    return {
      ...(minCandidateNodesPercentage === undefined ? {} : { minCandidateNodesPercentage }),
      ...(minCandidateNodesAbsolute === undefined ? {} : { minCandidateNodesAbsolute }),
    };
  },
};

/** Field of upstream's format that is accepted and has no effect here. */
export const anything: Field<unknown> = dictionary({ parse: () => undefined });
