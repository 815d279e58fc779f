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

export const PRETTY = query('pretty', 'string', 'If true, the response is indented.');

const DRY_RUN = query('dryRun', 'string', 'With All, the change is processed completely but not stored.');

export const WRITE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('fieldManager', 'string', 'Name of the field manager of the change.'),
  query('fieldValidation', 'string', 'What to do with unknown or duplicate fields: Ignore, Warn or Strict.'),
];

export const PATCH_PARAMETERS: readonly Parameter[] = [
  ...WRITE_PARAMETERS,
  query('force', 'boolean', 'Whether apply takes over fields from other field managers.'),
];

/** List parameters with which a deletecollection request also selects objects. */
export const CHOICE_PARAMETERS: readonly Parameter[] = [
  query('continue', 'string', 'Token from the previous page, at which the next page of a list starts.'),
  query('fieldSelector', 'string', 'A selector by fields: narrows the list of returned objects.'),
  query('labelSelector', 'string', 'A selector by labels: narrows the list of returned objects.'),
  query('limit', 'integer', 'Maximum number of items of a page.'),
  query('resourceVersion', 'string', 'The revision to start from.'),
  query('resourceVersionMatch', 'string', 'Interpretation of resourceVersion.'),
  query('sendInitialEvents', 'boolean', 'Whether a watch starts with events for the current objects.'),
  query('timeoutSeconds', 'integer', 'Time limit of the list or watch.'),
];

export const LIST_PARAMETERS: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'Whether a watch may send bookmarks.'),
  ...CHOICE_PARAMETERS,
  query('watch', 'boolean', 'Watch for changes to the described resources, instead of listing them.'),
];

export const DELETE_PARAMETERS: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Seconds before the object is deleted.'),
  query(
    'ignoreStoreReadErrorWithClusterBreakingPotential',
    'boolean',
    'Whether an object that cannot be read from the store is deleted without reading it.',
  ),
  query('orphanDependents', 'boolean', 'Deprecated, use propagationPolicy: whether dependents are orphaned.'),
  query('propagationPolicy', 'string', 'Handling of dependents: Orphan, Background or Foreground.'),
];

export const LOG_PARAMETERS: readonly Parameter[] = [
  query('container', 'string', 'Container of the log; optional for pods with one container.'),
  query('follow', 'boolean', 'Whether to follow the log.'),
  query(
    'insecureSkipTLSVerifyBackend',
    'boolean',
    'Whether to skip the verification of the serving certificate of the kubelet.',
  ),
  query('limitBytes', 'integer', 'Maximum number of bytes to send.'),
  query('previous', 'boolean', 'Whether to return the log of the previous container.'),
  query('sinceSeconds', 'integer', 'Maximum age of the lines in seconds.'),
  query('stream', 'string', 'Streams to return: All, Stdout or Stderr.'),
  query('tailLines', 'integer', 'Number of last lines to return.'),
  query('timestamps', 'boolean', 'Whether each line begins with its time.'),
];

const CONTAINER = query('container', 'string', 'Container; optional for pods with one container.');
const STREAMS = [
  query('stderr', 'boolean', 'Whether standard error is streamed.'),
  query('stdin', 'boolean', 'Whether standard input is streamed.'),
  query('stdout', 'boolean', 'Whether standard output is streamed.'),
  query('tty', 'boolean', 'Whether a terminal is allocated.'),
];

/** Parameters of connections by subresource. */
export const CONNECT_PARAMETERS: Readonly<Record<string, readonly Parameter[]>> = {
  attach: [CONTAINER, ...STREAMS],
  exec: [query('command', 'string', 'Command to run; each argument is a separate parameter.'), CONTAINER, ...STREAMS],
  portforward: [query('ports', 'integer', 'Ports to forward, for WebSocket connections.')],
  proxy: [query('path', 'string', 'Path of the proxied request.')],
};

export const byName = (parameters: readonly Parameter[]): readonly Parameter[] =>
  parameters.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
