/** The service proxy as a separate process, beside another distribution's kubelet. */
import { createEventRecorder } from '../../client/index.ts';
import { nodeFiles } from '../../pki/index.ts';
import { loadSettings } from '../config/settings.ts';
import { hostProxy } from '../network/network-services.ts';
import { allPorts, ownPorts } from '../network/own-ports.ts';
import { openClient } from '../process/api-access.ts';
import { useHelpers } from '../process/helper-programs.ts';
import {
  systemClock as clock,
  createProcessLog,
  endOnDefect,
  systemRandom as random,
  scrubEnvironment,
  untilSignal,
} from '../process/process.ts';
import { excludeSlowKeyExchanges } from '../process/tls.ts';

export interface ProxyOptions {
  readonly root: string | undefined;
  readonly config: string | undefined;
  /** Path of a kubeconfig. Default: the kubeconfig of the kubelet. */
  readonly kubeconfig: string | undefined;
  readonly logLevel: number | undefined;
}

/**
 * Runs until SIGINT or SIGTERM. The nftables rules remain after the end, so that Services keep working. Throws
 * CodedErrors if the proxy cannot start.
 */
export async function runProxy(options: ProxyOptions): Promise<number> {
  scrubEnvironment();
  excludeSlowKeyExchanges();
  const settings = await loadSettings(options);
  const log = createProcessLog('proxy', settings.logLevel);
  endOnDefect(log);
  await useHelpers(settings);
  const kubeconfig = options.kubeconfig ?? nodeFiles(settings.root).kubeconfig;
  const api = await openClient(kubeconfig, 'kube-proxy/hyperedge', { clock, random, log });
  const informers = api.newInformers();
  const { nodeName: host } = settings;
  const recorder = createEventRecorder({ client: api.client, component: 'kube-proxy', host, clock, random, log });
  const reservedPorts = allPorts(await ownPorts(settings, log));
  const proxy = hostProxy({ settings, informers, nodeName: settings.nodeName, reservedPorts, recorder, log });
  const hold = setInterval(() => {}, 1 << 30);
  const interrupted = untilSignal(log);
  const started = proxy.start();
  await Promise.race([started, interrupted.signal]);
  await interrupted.signal;
  await proxy.stop({ keepRules: true });
  await recorder.stop();
  await informers.stop();
  await api.close();
  clearInterval(hold);
  process.exit(0);
}
