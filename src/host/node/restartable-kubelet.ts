import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Kubelet } from '../../kubelet/index.ts';

export interface RestartableKubelet extends Kubelet {
  /** Replaces the kubelet by a new one with the current configuration. The pods continue to run. */
  restart(): Promise<void>;
}

const RETRY_MS = 2_000;

/** `make`: creates a kubelet. It throws if the configuration is invalid; then the running kubelet remains. */
export async function restartableKubelet(
  make: (isFirst: boolean) => Promise<Kubelet>,
  hostLog: Log,
): Promise<RestartableKubelet> {
  const log = hostLog.named('kubelet');
  const ready = Promise.withResolvers<void>();
  let isFirst = true;
  const adopt = async (): Promise<Kubelet> => {
    const next = await make(isFirst);
    isFirst = false;
    void next.nodeReady.then(() => ready.resolve());
    return next;
  };
  let current = await adopt();
  let stopped = false;
  let changing: Promise<void> = Promise.resolve();
  /** Starts a kubelet. The previous one has stopped, so after a failure new kubelets are tried until one starts. */
  const start = async (first: Kubelet): Promise<void> => {
    let next: Kubelet | undefined = first;
    while (!stopped) {
      try {
        current = next ?? (await adopt());
        return await current.start();
      } catch (error) {
        log.error('kubelet not started again; retrying', { error: messageOf(error), retryMs: RETRY_MS });
        next = undefined;
        await current.stop();
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  };
  const replace = async (): Promise<void> => {
    if (stopped) return;
    const next = await adopt();
    await current.stop();
    await start(next);
    log.info('kubelet restarted with its new configuration');
  };
  return {
    get port() {
      return current.port;
    },
    nodeReady: ready.promise,
    get isNodeReady() {
      return current.isNodeReady;
    },
    start: () => current.start(),
    forgetBackOff: (uid) => current.forgetBackOff(uid),
    report: () => current.report(),
    addressesChanged: () => current.addressesChanged(),
    // Waits for a restart in progress. A kubelet that is being created reads the newest certificate itself.
    reloadCertificate: () => changing.then(() => current.reloadCertificate()),
    restart() {
      const done = changing.then(replace);
      changing = done.catch(ignore('the caller of the restart gets its error'));
      return done;
    },
    async stop(options) {
      stopped = true;
      await changing;
      await current.stop(options);
    },
  };
}
