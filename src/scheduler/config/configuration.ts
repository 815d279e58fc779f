/**
 * Parses a KubeSchedulerConfiguration, the format of kube-scheduler's `--config`. Unknown fields are errors. Source:
 * k8s.io/kube-scheduler/config/v1.
 */
import { CodedError } from '../../base/errors.ts';
import {
  type Cursor,
  type Field,
  integer,
  list,
  object,
  oneOf,
  readConfigFile,
  string,
} from '../../wire/strict-yaml.ts';
import { FILTER_NAMES } from '../core/filters/filter.ts';
import type { PluginArgs } from '../core/plugin-args.ts';
import { DEFAULT_PROFILE, type ProfileSettings, SCORER_NAMES } from '../core/profile.ts';
import type { SchedulerSettings } from '../index.ts';
import { extender } from './extender-fields.ts';
import { anything, PLUGIN_ARGS } from './plugin-fields.ts';

type FilterName = (typeof FILTER_NAMES)[number];
type ScorerName = (typeof SCORER_NAMES)[number];

const DEFAULT_PREEMPTION = 'DefaultPreemption';
/** Plug-ins that every profile has and that cannot be disabled. */
const ALWAYS = ['SchedulingGates', 'PrioritySort', 'DefaultBinder', 'DynamicResources', 'Coscheduling'];
const PLUGINS: ReadonlySet<string> = new Set([...FILTER_NAMES, ...SCORER_NAMES, DEFAULT_PREEMPTION, ...ALWAYS]);

const isFilter = (name: string): name is FilterName => (FILTER_NAMES as readonly string[]).includes(name);
const isScorer = (name: string): name is ScorerName => (SCORER_NAMES as readonly string[]).includes(name);

const pluginName: Field<string> = {
  parse: (at) => {
    const name = string().parse(at);
    return PLUGINS.has(name) ? name : at.fail(`plug-in "${name}" is unknown; known are ${[...PLUGINS].join(', ')}`);
  },
};
const disabledName: Field<string> = {
  parse: (at) => {
    const name = string().parse(at);
    if (name === '*') return name;
    if (ALWAYS.includes(name)) at.fail(`plug-in "${name}" cannot be disabled`);
    return pluginName.parse(at);
  },
};

const pluginSet = object({
  enabled: list(object({ name: pluginName, weight: integer(0, 1_000_000) }, ['name'])),
  disabled: list(object({ name: disabledName }, ['name'])),
});

/**
 * Rejects settings for single extension points. A plug-in can only be enabled as a whole, or for filter, score or
 * postFilter.
 */
const notByStep: Field<undefined> = {
  parse: (at) => at.fail('is not supported; use multiPoint, filter, score or postFilter'),
};

const plugins = object({
  multiPoint: pluginSet,
  filter: pluginSet,
  score: pluginSet,
  postFilter: pluginSet,
  preEnqueue: notByStep,
  queueSort: notByStep,
  preFilter: notByStep,
  preScore: notByStep,
  reserve: notByStep,
  permit: notByStep,
  preBind: notByStep,
  bind: notByStep,
  postBind: notByStep,
});

const pluginConfig: Field<Partial<PluginArgs>> = {
  parse: (at) => {
    const cursor: Field<Cursor> = { parse: (inner) => inner };
    const { name, args } = object({ name: string(), args: cursor }, ['name', 'args']).parse(at);
    const argsOf = Object.hasOwn(PLUGIN_ARGS, name) ? PLUGIN_ARGS[name] : undefined;
    const known = Object.keys(PLUGIN_ARGS).join(', ');
    return argsOf?.(args) ?? at.fail(`plug-in "${name}" takes no arguments; those with arguments are ${known}`);
  },
};

const profile: Field<ProfileSettings> = {
  parse: (at) => {
    const parsed = object({
      schedulerName: string({ pattern: /^\S+$/, fix: 'give a name without spaces' }),
      percentageOfNodesToScore: integer(0, 100),
      plugins,
      pluginConfig: list(pluginConfig),
    }).parse(at);
    return {
      schedulerName: parsed.schedulerName ?? DEFAULT_PROFILE.schedulerName,
      percentageOfNodesToScore: parsed.percentageOfNodesToScore ?? 0,
      ...pluginsOf(parsed.plugins ?? {}),
      args: Object.assign({}, DEFAULT_PROFILE.args, ...(parsed.pluginConfig ?? [])) as PluginArgs,
    };
  },
};

type PluginSet = ReturnType<(typeof pluginSet)['parse']>;
type Plugins = ReturnType<(typeof plugins)['parse']>;

function pluginsOf(given: Plugins): Pick<ProfileSettings, 'filters' | 'scores' | 'preempts'> {
  const filters = new Set<string>(DEFAULT_PROFILE.filters);
  const scores = new Map<string, number>(DEFAULT_PROFILE.scores);
  const preempting = new Set(DEFAULT_PROFILE.preempts ? [DEFAULT_PREEMPTION] : []);
  const weightOf = (name: string, weight: number | undefined): number =>
    weight || (isScorer(name) ? (DEFAULT_PROFILE.scores.get(name) ?? 1) : 1);
  const apply = (set: PluginSet | undefined, points: readonly ('filter' | 'score' | 'postFilter')[]): void => {
    const remove = (from: Set<string> | Map<string, number>, name: string): void => {
      if (name === '*') from.clear();
      else from.delete(name);
    };
    for (const { name } of set?.disabled ?? []) {
      if (points.includes('filter')) remove(filters, name);
      if (points.includes('score')) remove(scores, name);
      if (points.includes('postFilter')) remove(preempting, name);
    }
    for (const { name, weight } of set?.enabled ?? []) {
      if (points.includes('filter') && isFilter(name)) filters.add(name);
      if (points.includes('score') && isScorer(name)) scores.set(name, weightOf(name, weight));
      if (points.includes('postFilter') && name === DEFAULT_PREEMPTION) preempting.add(name);
    }
  };
  apply(given.multiPoint, ['filter', 'score', 'postFilter']);
  apply(given.filter, ['filter']);
  apply(given.score, ['score']);
  apply(given.postFilter, ['postFilter']);
  return {
    // Filters are in upstream's order, because a node is counted under the first filter that rejects it.
    filters: FILTER_NAMES.filter((name) => filters.has(name)),
    scores: new Map([...scores].flatMap(([name, weight]) => (isScorer(name) ? [[name, weight] as const] : []))),
    preempts: preempting.size > 0,
  };
}

const MAX_SECONDS = 86_400;

const configuration = object(
  {
    apiVersion: oneOf('kubescheduler.config.k8s.io/v1'),
    kind: oneOf('KubeSchedulerConfiguration'),
    profiles: list(profile),
    extenders: list(extender),
    percentageOfNodesToScore: integer(0, 100),
    podInitialBackoffSeconds: integer(1, MAX_SECONDS),
    podMaxBackoffSeconds: integer(1, MAX_SECONDS),
    // Settings of the kube-scheduler process. They have no effect, because the scheduler is part of `hyperedge
    // controllers`.
    clientConnection: anything,
    leaderElection: anything,
  },
  ['apiVersion', 'kind'],
);

/** Reads the file. Throws CodedError 'bad-config' with file, line and field. */
export async function readSchedulerConfiguration(file: string): Promise<SchedulerSettings> {
  const parsed = await readConfigFile(file, configuration);
  if (parsed === undefined) throw new CodedError('bad-config', `${file} does not exist; write it or remove the field`);
  const given = parsed.profiles ?? [DEFAULT_PROFILE];
  const names = given.map(({ schedulerName }) => schedulerName);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new CodedError('bad-config', `${file}: profiles: schedulerName "${twice}" is given twice; rename one`);
  }
  if (given.length === 0) throw new CodedError('bad-config', `${file}: profiles: is empty; give one or remove it`);
  const extenders = parsed.extenders ?? [];
  const ignored = extenders.flatMap(({ ignoredByScheduler }) => ignoredByScheduler);
  const profiles = given.map((each) => ({
    ...each,
    percentageOfNodesToScore: each.percentageOfNodesToScore || (parsed.percentageOfNodesToScore ?? 0),
    args: { ...each.args, ignoredResources: [...each.args.ignoredResources, ...ignored] },
  }));
  const seconds = (value: number | undefined): number | undefined => (value === undefined ? undefined : value * 1_000);
  return {
    profiles,
    extenders,
    initialBackoffMs: seconds(parsed.podInitialBackoffSeconds),
    maxBackoffMs: seconds(parsed.podMaxBackoffSeconds),
  };
}
