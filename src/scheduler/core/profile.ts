/** Profile: the plug-ins with their weights and arguments for pods with one scheduler name. Source: KEP-1451. */
import { FILTER_NAMES, type Filter } from './filters/filter.ts';
import { FILTERS } from './filters/index.ts';
import { DEFAULT_ARGS, type PluginArgs } from './plugin-args.ts';
import { SCORERS, type ScorerName, type WeightedScorer } from './scores/index.ts';

export const DEFAULT_SCHEDULER_NAME = 'default-scheduler';

export interface ProfileSettings {
  readonly schedulerName: string;
  readonly filters: readonly (typeof FILTER_NAMES)[number][];
  /** Weights of the enabled scorers. */
  readonly scores: ReadonlyMap<ScorerName, number>;
  /** Whether DefaultPreemption is enabled. */
  readonly preempts: boolean;
  /**
   * Share of the nodes (1 to 100) after which the search ends. With 0, the share decreases with the number of nodes, as
   * in upstream.
   */
  readonly percentageOfNodesToScore: number;
  readonly args: PluginArgs;
}

export interface Profile {
  readonly schedulerName: string;
  readonly filters: readonly Filter[];
  readonly scorers: readonly WeightedScorer[];
  readonly preempts: boolean;
  readonly percentageOfNodesToScore: number;
  readonly args: PluginArgs;
}

export const SCORER_NAMES = Object.keys(SCORERS) as ScorerName[];

export const DEFAULT_PROFILE: ProfileSettings = {
  schedulerName: DEFAULT_SCHEDULER_NAME,
  filters: FILTER_NAMES,
  scores: new Map(SCORER_NAMES.map((name) => [name, SCORERS[name].weight])),
  preempts: true,
  percentageOfNodesToScore: 0,
  args: DEFAULT_ARGS,
};

export function profileOf(settings: ProfileSettings): Profile {
  const { schedulerName, preempts, percentageOfNodesToScore, args } = settings;
  return {
    schedulerName,
    preempts,
    percentageOfNodesToScore,
    args,
    filters: settings.filters.map((name) => FILTERS[name](args)),
    scorers: [...settings.scores].map(([name, weight]) => ({ weight, score: SCORERS[name].make(args) })),
  };
}

const MIN_FEASIBLE = 100;
const MIN_PERCENTAGE = 5;

/** Number of feasible nodes after which the search ends. Source: upstream's numFeasibleNodesToFind. */
export function feasibleNodesToFind(nodes: number, percentage: number): number {
  if (nodes < MIN_FEASIBLE || percentage >= 100) return nodes;
  const share = percentage > 0 ? percentage : Math.max(MIN_PERCENTAGE, 50 - Math.floor(nodes / 125));
  return Math.max(MIN_FEASIBLE, Math.floor((nodes * share) / 100));
}
