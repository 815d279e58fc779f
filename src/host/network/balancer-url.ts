import type { Settings } from '../config/settings.ts';

/** Loopback only, so that the balancer does not expose the control plane to other hosts. */
export const BALANCER_ADDRESS = '127.0.0.1';

/** Server URL in the kubeconfigs of this host's components. */
export const balancerUrl = ({ ports }: Pick<Settings, 'ports'>): string =>
  `https://${BALANCER_ADDRESS}:${ports.balancer}`;
