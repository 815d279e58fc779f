/**
 * Query and path parameters of operations. Source: metav1's options types; connection options of pods and services
 * (core/v1).
 */

export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path';
  readonly type: 'string' | 'boolean' | 'integer';
  readonly description: string;
}

const query = (name: string, type: Parameter['type'], description: string): Parameter => ({
  name,
  in: 'query',
  type,
  description,
});

export const inPath = (name: string, description: string): Parameter => ({
  name,
  in: 'path',
  type: 'string',
  description,
});

export const PRETTY = query('pretty', 'string', 'If true, the answer is indented.');

const DRY_RUN = query('dryRun', 'string', 'With All, the change is processed completely but not stored.');

export const WRITE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('fieldManager', 'string', 'Who makes the change, for the record of field owners.'),
  query('fieldValidation', 'string', 'What to do with unknown or duplicate fields: Ignore, Warn or Strict.'),
];

export const PATCH_PARAMETERS: readonly Parameter[] = [
  ...WRITE_PARAMETERS,
  query('force', 'boolean', 'Whether apply takes fields from other owners.'),
];

/** List parameters with which a deletecollection request also selects objects. */
export const CHOICE_PARAMETERS: readonly Parameter[] = [
  query('continue', 'string', 'Where the next page of a list starts; from the previous page.'),
  query('fieldSelector', 'string', 'A selector by fields: narrows the list of returned objects.'),
  query('labelSelector', 'string', 'A selector by labels: narrows the list of returned objects.'),
  query('limit', 'integer', 'The most items of one page.'),
  query('resourceVersion', 'string', 'The revision to start from.'),
  query('resourceVersionMatch', 'string', 'How the revision is to be understood.'),
  query('sendInitialEvents', 'boolean', 'Whether a watch starts with the present state.'),
  query('timeoutSeconds', 'integer', 'How long a list or watch may take.'),
];

export const LIST_PARAMETERS: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'Whether a watch may send bookmarks.'),
  ...CHOICE_PARAMETERS,
  query('watch', 'boolean', 'Watch for changes to the described resources, in the place of a list.'),
];

export const DELETE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'How long the object may take to end.'),
  query(
    'ignoreStoreReadErrorWithClusterBreakingPotential',
    'boolean',
    'Whether an object that cannot be read from the store is deleted unseen.',
  ),
  query('orphanDependents', 'boolean', 'Deprecated, use propagationPolicy: whether dependents are left alone.'),
  query('propagationPolicy', 'string', 'What becomes of dependents: Orphan, Background or Foreground.'),
];

export const LOG_PARAMETERS: readonly Parameter[] = [
  query('container', 'string', 'Of which container; not needed where there is one only.'),
  query('follow', 'boolean', 'Whether to go on with what is logged from now on.'),
  query('insecureSkipTLSVerifyBackend', 'boolean', 'Whether the certificate of the kubelet may be any.'),
  query('limitBytes', 'integer', 'The most bytes to send.'),
  query('previous', 'boolean', 'Whether to show the log of the container that ran before.'),
  query('sinceSeconds', 'integer', 'Only what is not older, in seconds.'),
  query('stream', 'string', 'Which streams: All, Stdout or Stderr.'),
  query('tailLines', 'integer', 'Only the last lines.'),
  query('timestamps', 'boolean', 'Whether each line begins with its time.'),
];

const CONTAINER = query('container', 'string', 'In which container; not needed where there is one only.');
const STREAMS = [
  query('stderr', 'boolean', 'Whether the error output is sent.'),
  query('stdin', 'boolean', 'Whether input is taken.'),
  query('stdout', 'boolean', 'Whether the output is sent.'),
  query('tty', 'boolean', 'Whether there is a terminal.'),
];

/** Parameters of connections by subresource. */
export const CONNECT_PARAMETERS: Readonly<Record<string, readonly Parameter[]>> = {
  attach: [CONTAINER, ...STREAMS],
  exec: [
    query('command', 'string', 'What is to be run; each argument is a parameter of its own.'),
    CONTAINER,
    ...STREAMS,
  ],
  portforward: [query('ports', 'integer', 'To which ports, for WebSocket connections.')],
  proxy: [query('path', 'string', 'The path to ask for there.')],
};

export const byName = (parameters: readonly Parameter[]): readonly Parameter[] =>
  parameters.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
