/** Plug-ins that register with the kubelet. Source: k8s.io/kubelet/pkg/apis/pluginregistration/v1. */
export interface PluginInfo {
  /** CSIPlugin, DRAPlugin or DevicePlugin. */
  readonly type: string;
  readonly name: string;
  /** Socket of the plug-in's service. '' when the registration socket also serves it. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

export interface RegistrationSockets {
  /** Sockets in a directory, each with an identity that changes when the socket is created again. */
  list(directory: string): Promise<ReadonlyMap<string, string>>;
  info(socket: string): Promise<PluginInfo>;
  /** `error`: reason why the plug-in was not registered, '' on success. */
  notify(socket: string, error: string): Promise<void>;
}
