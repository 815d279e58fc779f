import type { Settings } from '../config/settings.ts';

/** Loopback address, so that the balancer does not expose the control plane to other hosts. */
export const BALANCER_ADDRESS = '127.0.0.1';

/** Server URL in the kubeconfigs of this host's node components. */
export const balancerUrl = ({ ports }: Pick<Settings, 'ports'>): string =>
  `https://${BALANCER_ADDRESS}:${ports.balancer}`;
