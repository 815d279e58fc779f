/** Completes arguments of the built-in client's verbs, with values from the server and the kubeconfig. */
import {
  type Candidate,
  type CompletedFlag,
  type Completion,
  cursorPlace,
  flagCandidates,
  matching,
} from '../base/command-line/completion.ts';
import { type FlagSpecs, type Flags, parseArguments } from './core/flags.ts';
import type { AnyObject } from './core/objects.ts';
import { pathOf, type ResourceInfo } from './core/resources.ts';
import type { System, Terminal, Verb } from './port.ts';
import { chooseVerb, GLOBAL_FLAGS, withSession } from './run.ts';
import { entriesOf, type Session } from './session.ts';

const NAMES = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
/** Maximum number of names that are requested from the server and offered. */
const MOST_NAMES = 1000;

const FLAG_VALUES: Readonly<Record<string, readonly string[]>> = {
  cascade: ['background', 'foreground', 'orphan'],
  'dry-run': ['client', 'none', 'server'],
  output: ['custom-columns=', 'custom-columns-file=', 'json', 'jsonpath=', 'jsonpath-file=', 'name', 'wide', 'yaml'],
  for: ['condition=', 'create', 'delete', 'jsonpath='],
  type: ['json', 'merge', 'strategic'],
};
/** Flags whose value is the name of an object, with the type of the object. */
const FLAG_TYPES: Readonly<Record<string, string>> = { namespace: 'namespaces', serviceaccount: 'serviceaccounts' };
/** Flags whose value is the name of an entry of the kubeconfig, with the field of the entry. */
const FLAG_ENTRIES: Readonly<Record<string, string>> = { context: 'contexts', cluster: 'clusters' };

const WORKLOADS = ['daemonsets', 'deployments', 'statefulsets'];
const SCALED = ['deployments', 'replicasets', 'replicationcontrollers', 'statefulsets'];
const ACCESS_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** Arguments of a verb. `objects`: TYPE NAME… or TYPE/NAME…. `names`: names of one type. */
type Arguments =
  | { readonly kind: 'objects'; readonly types?: readonly string[] }
  | { readonly kind: 'names'; readonly type: string; readonly isRepeated: boolean; readonly end?: string }
  | { readonly kind: 'types' }
  | { readonly kind: 'access' }
  | { readonly kind: 'contexts' };

const OBJECTS: Arguments = { kind: 'objects' };
const POD: Arguments = { kind: 'names', type: 'pods', isRepeated: false };
const NODES: Arguments = { kind: 'names', type: 'nodes', isRepeated: true };
const REQUESTS: Arguments = { kind: 'names', type: 'certificatesigningrequests', isRepeated: true };
const WORKLOAD: Arguments = { kind: 'objects', types: WORKLOADS };

const ARGUMENTS: Readonly<Record<string, Arguments>> = {
  get: OBJECTS,
  describe: OBJECTS,
  edit: OBJECTS,
  delete: OBJECTS,
  patch: OBJECTS,
  label: OBJECTS,
  annotate: OBJECTS,
  wait: OBJECTS,
  expose: OBJECTS,
  scale: { kind: 'objects', types: SCALED },
  autoscale: { kind: 'objects', types: SCALED },
  'set env': WORKLOAD,
  'set image': WORKLOAD,
  'set resources': WORKLOAD,
  'set serviceaccount': WORKLOAD,
  'certificate approve': REQUESTS,
  'certificate deny': REQUESTS,
  logs: POD,
  exec: POD,
  attach: POD,
  'port-forward': POD,
  cp: { kind: 'names', type: 'pods', isRepeated: true, end: ':' },
  cordon: NODES,
  uncordon: NODES,
  drain: NODES,
  taint: NODES,
  'top nodes': NODES,
  'top pods': POD,
  explain: { kind: 'types' },
  'rollout status': WORKLOAD,
  'rollout history': WORKLOAD,
  'rollout undo': WORKLOAD,
  'rollout restart': WORKLOAD,
  'rollout pause': WORKLOAD,
  'rollout resume': WORKLOAD,
  'auth can-i': { kind: 'access' },
  'config use-context': { kind: 'contexts' },
  'config delete-context': { kind: 'contexts' },
  'config get-contexts': { kind: 'contexts' },
  'config rename-context': { kind: 'contexts' },
  'config set-context': { kind: 'contexts' },
};

export interface CompletionRequest {
  readonly verbs: readonly Verb[];
  /** Words between the program and the cursor. */
  readonly words: readonly string[];
  /** The word at the cursor. */
  readonly current: string;
  readonly io: Terminal;
  readonly system: System;
  readonly signal: AbortSignal;
}

/** Completes the word at the cursor. Rejects when the server or the kubeconfig cannot be read. */
export async function completeVerb(request: CompletionRequest): Promise<Completion> {
  const { verbs, words, current } = request;
  const chosen = chooseVerb(verbs, words);
  if (chosen === undefined) return { candidates: verbCandidates(verbs, current) };
  const { verb, words: path, rest } = chosen;
  if (verb.verbs !== undefined && verb.load === undefined) return { candidates: verbCandidates(verb.verbs, current) };
  const specs = { ...GLOBAL_FLAGS, ...verb.flags };
  const flags = completedFlags(specs);
  const place = cursorPlace(flags, rest, current);
  // The flag at the cursor has no value yet, so it is not parsed.
  const complete = place.kind === 'value' && place.lead === '' ? rest.slice(0, -1) : rest;
  const use = <T>(body: (session: Session) => Promise<T>): Promise<T> =>
    connected(request, parseArguments(specs, complete).flags, body);
  switch (place.kind) {
    case 'flag':
      return { candidates: flagCandidates(flags, current) };
    case 'value':
      return flagValues({ request, specs, use, ...place, given: parseArguments(specs, complete).flags });
    case 'rest':
      return { candidates: [] };
    default: {
      const kind = ARGUMENTS[path.join(' ')];
      const subverbs = place.positionals.length === 0 ? verbCandidates(verb.verbs ?? [], current) : [];
      if (kind === undefined) return { candidates: subverbs };
      if (kind.kind === 'contexts')
        return { candidates: await entryNames(request, 'contexts', parseArguments(specs, complete).flags, '') };
      return use((session) => argumentValues(session, kind, place.positionals, current));
    }
  }
}

/** Names of a type's objects that begin with `current`. */
export async function completeNames(
  request: Omit<CompletionRequest, 'verbs' | 'words'>,
  type: string,
  argv: readonly string[],
): Promise<Completion> {
  const { flags } = parseArguments(GLOBAL_FLAGS, argv);
  return connected({ ...request, verbs: [], words: [] }, flags, async (session) => ({
    candidates: matching(await namesOf(session, type), request.current),
  }));
}

function connected<T>(
  { verbs, io, system, signal }: CompletionRequest,
  flags: Flags,
  body: (session: Session) => Promise<T>,
): Promise<T> {
  return withSession({ verbs, flags, args: [], dashAt: undefined, io, system, signal, program: 'hyperedge' }, body);
}

const verbCandidates = (verbs: readonly Verb[], current: string): Candidate[] =>
  matching(
    verbs.map(({ name, summary }) => ({ value: name, help: summary })),
    current,
  );

const completedFlags = (specs: FlagSpecs): Record<string, CompletedFlag> =>
  Object.fromEntries(
    Object.entries(specs).map(([name, { short, type, bare, help }]) => [
      name,
      {
        ...(short === undefined ? {} : { short }),
        takesValue: type !== 'bool' && type !== 'count' && bare === undefined,
        help,
      },
    ]),
  );

interface FlagPlace {
  readonly request: CompletionRequest;
  readonly specs: FlagSpecs;
  readonly flag: string;
  readonly lead: string;
  readonly positionals: readonly string[];
  readonly given: Flags;
  use(body: (session: Session) => Promise<Completion>): Promise<Completion>;
}

async function flagValues({ request, specs, flag, lead, positionals, given, use }: FlagPlace): Promise<Completion> {
  const { current } = request;
  const fixed = FLAG_VALUES[flag];
  if (fixed !== undefined) {
    const candidates = matching(fixed, current, lead);
    return { candidates, isPrefix: candidates.some(({ value }) => value.endsWith('=')) };
  }
  const type = FLAG_TYPES[flag];
  if (type !== undefined)
    return use(async (session) => ({ candidates: matching(await namesOf(session, type), current, lead) }));
  const entries = FLAG_ENTRIES[flag];
  if (entries !== undefined) return { candidates: await entryNames(request, entries, given, lead) };
  if (flag === 'container')
    return use(async (session) => ({
      candidates: matching(await containersOf(session, positionals[0] ?? ''), current, lead),
    }));
  const placeholder = specs[flag]?.value ?? '';
  return { candidates: [], ...(/FILE|PATH|DIR/.test(placeholder) ? { paths: 'file' as const } : {}) };
}

async function entryNames(
  { system, current }: CompletionRequest,
  field: string,
  flags: Flags,
  lead: string,
): Promise<Candidate[]> {
  const { document } = await system.kubeconfig(flags.text('kubeconfig') || undefined);
  const list = document[field];
  const entries = Array.isArray(list) ? (list as readonly { readonly name?: unknown }[]) : [];
  return matching(
    entries.flatMap((each) => (typeof each?.name === 'string' ? [each.name] : [])),
    current,
    lead,
  );
}

async function argumentValues(
  session: Session,
  kind: Exclude<Arguments, { kind: 'contexts' }>,
  positionals: readonly string[],
  current: string,
): Promise<Completion> {
  const [type] = positionals;
  const slash = current.indexOf('/');
  if (slash > 0 && kind.kind !== 'access') {
    const lead = current.slice(0, slash + 1);
    return { candidates: matching(await namesOf(session, current.slice(0, slash)), current, lead) };
  }
  switch (kind.kind) {
    case 'types':
      return { candidates: type === undefined ? await typesOf(session, current) : [] };
    case 'access':
      if (type === undefined) return { candidates: matching(ACCESS_VERBS, current) };
      return { candidates: positionals.length === 1 ? await typesOf(session, current) : [] };
    case 'names': {
      if (type !== undefined && !kind.isRepeated) return { candidates: [] };
      const names = await namesOf(session, kind.type);
      const left = names.filter((name) => !positionals.includes(name));
      if (kind.end === undefined) return { candidates: matching(left, current) };
      return {
        candidates: matching(
          left.map((name) => `${name}${kind.end ?? ''}`),
          current,
        ),
        paths: 'file',
        isPrefix: true,
      };
    }
    default: {
      if (type === undefined)
        return {
          candidates: kind.types === undefined ? await typesOf(session, current) : matching(kind.types, current),
        };
      if (type.includes('/') || type.includes(',')) return { candidates: [] };
      const names = await namesOf(session, type);
      return {
        candidates: matching(
          names.filter((name) => !positionals.slice(1).includes(name)),
          current,
        ),
      };
    }
  }
}

/** Types of a list such as `pods,services`. If several types have the same name, each is offered with its group. */
async function typesOf(session: Session, current: string): Promise<Candidate[]> {
  const { all } = await session.resources();
  const seen = new Set<string>();
  const types = all
    .filter(({ verbs }) => verbs.includes('list'))
    .map((each) => {
      const isFirst = !seen.has(each.name);
      seen.add(each.name);
      return { value: isFirst ? each.name : `${each.name}.${each.group}`, help: each.kind };
    });
  const unique = [...new Map(types.map((each) => [each.value, each])).values()];
  return matching(unique, current, current.slice(0, current.lastIndexOf(',') + 1)).sort((left, right) =>
    left.value < right.value ? -1 : 1,
  );
}

async function namesOf(session: Session, type: string): Promise<string[]> {
  const resource: ResourceInfo = await session.resource(type);
  const { items } = await session.get<AnyObject>(
    pathOf(resource, session.namespaceFor(resource)),
    { limit: MOST_NAMES },
    NAMES,
  );
  return entriesOf(items)
    .flatMap(({ metadata }) => (typeof metadata?.name === 'string' ? [metadata.name] : []))
    .sort();
}

/**
 * Names of the containers of a pod. Empty for controllers such as `deploy/web`, whose spec has no containers itself.
 */
async function containersOf(session: Session, pod: string): Promise<string[]> {
  const [type, name] = pod.includes('/') ? pod.split('/') : ['pods', pod];
  if (name === undefined || name === '') return [];
  const object = await session.object(await session.resource(type ?? 'pods'), session.namespace, name);
  const { spec } = object as {
    spec?: Partial<Record<'containers' | 'initContainers' | 'ephemeralContainers', { name?: string }[]>>;
  };
  return [spec?.containers, spec?.initContainers, spec?.ephemeralContainers].flatMap((list) =>
    entriesOf(list).flatMap((each) => (each.name === undefined ? [] : [each.name])),
  );
}
