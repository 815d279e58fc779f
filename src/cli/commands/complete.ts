/**
 * The hidden command `__complete WORD… CURRENT`, which completion scripts call. Prints candidates for the word at the
 * cursor. Errors are not printed, because the shell would show them in the line that the user edits.
 */
import type { Candidate, Completion } from '../../base/command-line/completion.ts';
import type { Output } from '../command.ts';
import {
  commandOf,
  completeCommand,
  firstWords,
  type Lookup,
  type LookupContext,
  secondWords,
} from '../completion/table.ts';
import { isClientVerb, withoutLeadingFlags } from '../invocation.ts';
import { COMMANDS } from './table.ts';

/** Time limit, measured from the start of the process. The completion scripts stop the process after two seconds. */
const LIMIT_MS = 1500;

/** Prints one line per candidate and a line with directives. Resolves with the exit code. */
export async function runComplete(argv: readonly string[], out: Output, limitMs = LIMIT_MS): Promise<number> {
  const stop = new AbortController();
  const timeout = Math.max(100, limitMs - performance.now());
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      stop.abort();
      resolve(undefined);
    }, timeout);
  });
  const found = await Promise.race([complete(argv.slice(0, -1), argv.at(-1) ?? '', stop.signal), late]).catch(
    () => undefined,
  );
  clearTimeout(timer);
  if (found === undefined) return 1;
  out.stdout(textOf(found));
  return 0;
}

function textOf({ candidates, paths, isPrefix }: Completion): string {
  const lines = candidates
    .filter(({ value }) => /^[\x21-\x7e]+$/.test(value))
    .map(({ value, help }) => (help === undefined ? value : `${value}\t${help.replaceAll(/\s+/g, ' ')}`));
  const directives = [paths, isPrefix === true ? 'prefix' : undefined].filter((each) => each !== undefined);
  return [...lines, `:${directives.join(' ')}`, ''].join('\n');
}

async function complete(words: readonly string[], current: string, signal: AbortSignal): Promise<Completion> {
  const { completeClient, completeObjects } = await import('../../host/kubectl/completion.ts');
  const [first, ...others] = words;
  if (first === undefined) {
    const { candidates } = await completeClient([], current, signal);
    return { candidates: firstWords(COMMANDS, candidates, current) };
  }
  if (first === 'kubectl') return completeClient(others, current, signal);
  const afterFlags = withoutLeadingFlags(words);
  if (afterFlags.length < words.length || isClientVerb(words)) return completeClient(words, current, signal);
  const command = commandOf(COMMANDS, words);
  const seconds = words.length === 1 ? secondWords(COMMANDS, first, current) : [];
  if (first === 'config' && words.length === 1)
    return { candidates: [...seconds, ...(await configVerbs(current, signal))] };
  if (seconds.length > 0 || command === undefined) return { candidates: seconds };
  const lookup: Lookup = (kind, context) =>
    kind === 'check' || kind === 'image' || kind === 'operand' || kind === 'revision' || kind === 'snapshot'
      ? localValues(kind, context)
      : namesOf(kind, context);
  const namesOf = async (kind: keyof typeof RESOURCES, context: LookupContext): Promise<readonly string[]> => {
    const [namespace, kubeconfig] = [context.value('namespace') ?? 'default', context.value('kubeconfig')];
    const argv = ['--namespace', namespace, ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig])];
    return (await completeObjects(RESOURCES[kind], '', argv, signal)).candidates.map(({ value }) => value);
  };
  return completeCommand(COMMANDS, command, words.slice(command.name.split(' ').length), current, lookup);
}

/** Candidates after `config`, which has verbs of the built-in client in addition to those for the bootstrap file. */
async function configVerbs(current: string, signal: AbortSignal): Promise<readonly Candidate[]> {
  const { completeClient } = await import('../../host/kubectl/completion.ts');
  return (await completeClient(['config'], current, signal)).candidates;
}

const RESOURCES = {
  namespace: 'namespaces',
  node: 'nodes',
  rig: 'rigs',
  'rig-claim': 'rigclaims',
} as const;

/** Names of objects on the disk of this host. */
async function localValues(
  kind: 'check' | 'image' | 'operand' | 'revision' | 'snapshot',
  { positionals, value }: LookupContext,
): Promise<readonly string[]> {
  const root = value('root');
  switch (kind) {
    case 'image': {
      const { openImageStore } = await import('../../host/node/images.ts');
      const images = await (await openImageStore(root)).list();
      return images.flatMap(({ repoTags, repoDigests }) => (repoTags.length > 0 ? repoTags : repoDigests));
    }
    case 'snapshot': {
      const { snapshotFiles } = await import('../../host/store/snapshot-files.ts');
      return snapshotFiles(root);
    }
    case 'check': {
      const { chosenChecks } = await import('../../host/doctor/doctor.ts');
      return chosenChecks({}).map(({ id }) => id);
    }
    case 'operand': {
      const { OPERAND_NAMES } = await import('../../host/openshift/revision-archive.ts');
      return OPERAND_NAMES;
    }
    default: {
      const { listRevisions, operandNamed } = await import('../../host/openshift/revision-archive.ts');
      const listed = await listRevisions(root, operandNamed(positionals[0] ?? ''));
      return listed.map(({ revision }) => String(revision));
    }
  }
}
