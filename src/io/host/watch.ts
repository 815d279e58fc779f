import { type FSWatcher, watch } from 'node:fs';
import type { FileWatch } from '../../components/kubelet/port.ts';

/** Editors and atomic replacements make bursts of events; one call is enough for each. */
const COALESCE_MS = 10;

/** inotify through `fs.watch`. A path that does not exist gives no events: callers also check now and then. */
export function createFileWatch(): FileWatch {
  return {
    watch(path, listener) {
      let pending: NodeJS.Timeout | undefined;
      let watcher: FSWatcher | undefined;
      try {
        watcher = watch(path, { persistent: false }, () => {
          pending ??= setTimeout(() => {
            pending = undefined;
            listener();
          }, COALESCE_MS);
        });
        watcher.on('error', () => watcher?.close());
      } catch {
        watcher = undefined;
      }
      return {
        close() {
          watcher?.close();
          if (pending !== undefined) clearTimeout(pending);
        },
      };
    },
  };
}
