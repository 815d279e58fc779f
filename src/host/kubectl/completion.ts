/** Completion for the built-in client in this process. */
import type { Completion } from '../../base/command-line/completion.ts';
import { completeNames, completeVerb } from '../../kubectl/completion.ts';
import { VERBS } from '../../kubectl/verbs.ts';
import { HOST_FILE } from './client.ts';
import { nodeSystem, processTerminal } from './node-system.ts';

const places = () => ({ variable: process.env['KUBECONFIG'], hostFile: HOST_FILE });
/** Discards all output, because warnings of the API server would disturb the line that the user edits. */
const silent = () => ({ ...processTerminal(), out: () => {}, err: () => {} });

/** `words`: words between the program's name and the cursor. */
export const completeClient = (words: readonly string[], current: string, signal: AbortSignal): Promise<Completion> =>
  completeVerb({ verbs: VERBS, words, current, signal, io: silent(), system: nodeSystem(places()) });

/** Names of objects of a type. `argv`: flags of the client, such as `--namespace`. */
export const completeObjects = (
  type: string,
  current: string,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<Completion> => completeNames({ current, signal, io: silent(), system: nodeSystem(places()) }, type, argv);
