/** Plug-ins that register with the kubelet. Source: k8s.io/kubelet/pkg/apis/pluginregistration/v1. */
export interface PluginInfo {
  /** CSIPlugin, DRAPlugin or DevicePlugin. */
  readonly type: string;
  readonly name: string;
  /** Socket of the plug-in's service; '': the registration socket serves it too. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

export interface RegistrationSockets {
  /** The sockets in a directory, each with what differs once it was made again. */
  list(directory: string): Promise<ReadonlyMap<string, string>>;
  info(socket: string): Promise<PluginInfo>;
  /** `error`: why the plug-in was not registered; '' when it was. */
  notify(socket: string, error: string): Promise<void>;
}
