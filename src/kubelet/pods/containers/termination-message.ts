/** Termination message of a container. Source: kuberuntime_container.go getTerminationMessage. */
import type { Uid } from '../../../base/brand.ts';
import type { ContainerStatus } from '../../../runtime/port.ts';
import { ANNOTATIONS } from '../../core/pod-plan/snapshot.ts';
import type { KubeletFiles } from '../../ports/files-port.ts';
import { tailOfLog } from '../../server/log-lines.ts';
import type { PodDirectories } from '../directories.ts';

const MAX_MESSAGE_BYTES = 4096;
const LOG_LIMIT = { bytes: 2048, lines: 80 };

/**
 * Reads the message of an ended container. The unread rest of its file is truncated, because it would use disk space
 * for as long as the pod object exists.
 */
export async function terminationMessage(
  files: Pick<KubeletFiles, 'pods' | 'logs'>,
  status: ContainerStatus,
  path: string,
): Promise<string> {
  const fromFile = await files.pods.takeMessage(path, MAX_MESSAGE_BYTES);
  if (fromFile !== '') return fromFile;
  const fallsBack =
    status.annotations[ANNOTATIONS.terminationMessagePolicy] === 'FallbackToLogsOnError' && status.exitCode !== 0;
  if (!fallsBack) return status.message;
  const tail = await tailOfLog(files.logs, status.logPath, LOG_LIMIT).catch(() => '');
  return tail === '' ? status.message : tail;
}

/** Messages of a pod's ended containers. Each is read once, because reading truncates its file. */
export class TerminationMessages {
  readonly #files: Pick<KubeletFiles, 'pods' | 'logs'>;
  readonly #directories: Pick<PodDirectories, 'terminationMessage'>;
  readonly #uid: Uid;
  readonly #known = new Map<string, string>();

  constructor(
    files: Pick<KubeletFiles, 'pods' | 'logs'>,
    directories: Pick<PodDirectories, 'terminationMessage'>,
    uid: Uid,
  ) {
    this.#files = files;
    this.#directories = directories;
    this.#uid = uid;
  }

  async addTo(containers: readonly ContainerStatus[]): Promise<ContainerStatus[]> {
    const found: ContainerStatus[] = [];
    for (const status of containers)
      found.push(status.state === 'exited' ? { ...status, message: await this.#of(status) } : status);
    return found;
  }

  async #of(status: ContainerStatus): Promise<string> {
    const known = this.#known.get(status.id);
    if (known !== undefined) return known;
    const path = this.#directories.terminationMessage(this.#uid, status.name, status.attempt);
    const message = await terminationMessage(this.#files, status, path);
    this.#known.set(status.id, message);
    return message;
  }
}
