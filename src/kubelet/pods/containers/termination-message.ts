/** Termination message of a container. Source: kuberuntime_container.go getTerminationMessage. */
import type { ContainerStatus } from '../../../runtime/port.ts';
import { ANNOTATIONS } from '../../core/pod-plan/snapshot.ts';
import type { KubeletFiles } from '../../files-port.ts';
import { tailOfLog } from '../../server/log-lines.ts';

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
