/** Parses the names of the kubelet's log files: `NAMESPACE_POD_UID/CONTAINER/ATTEMPT.log[.STAMP]`. */

export interface PodDirectory {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
}

/** Parses the name of a pod's log directory; undefined if it is not such a name. */
export function podDirectoryOf(name: string): PodDirectory | undefined {
  const [, namespace, pod, uid] = /^([a-z0-9][a-z0-9-]*)_([a-z0-9][a-z0-9.-]*)_([A-Za-z0-9-]+)$/.exec(name) ?? [];
  return namespace === undefined || pod === undefined || uid === undefined ? undefined : { namespace, pod, uid };
}

/** Log files of a container, oldest first. Compressed files and files of other programs are omitted. */
export function orderedLogs(names: readonly string[]): string[] {
  return names
    .flatMap((name) => {
      const [, attempt, stamp] = /^(\d{1,9})\.log(?:\.(\d{8,20}))?$/.exec(name) ?? [];
      // The file without a stamp is still written, so it is the newest one of its attempt.
      return attempt === undefined ? [] : [{ name, attempt: Number(attempt), stamp: stamp ?? '~' }];
    })
    .sort((a, b) => a.attempt - b.attempt || (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : 0))
    .map(({ name }) => name);
}

const COMPONENTS: ReadonlySet<string> = new Set(['api', 'controllers', 'etcd']);

/** Name of the control-plane component that runs in the container; empty for other containers. */
export function componentOf({ namespace, pod }: PodDirectory, container: string): string {
  return namespace === 'kube-system' && COMPONENTS.has(container) && pod.startsWith(`master-${container}-`)
    ? container
    : '';
}

/** Severity of a log line of this product's components, which have the format `time level component message`. */
export function severityOf(text: string): 'error' | 'warning' | 'info' {
  const [, level] = /^\S{20,30} ([EWI]) /.exec(text) ?? [];
  return level === 'E' ? 'error' : level === 'W' ? 'warning' : 'info';
}
