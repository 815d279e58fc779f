/** `/configz`: the effective configuration as a KubeletConfiguration. Source: k8s.io/kubelet/config/v1beta1. */
import type { KubeletConfig } from '../config/kubelet-config.ts';

/** Go's duration format. */
const duration = (ms: number): string => `${ms / 1000}s`;

export function configz(config: KubeletConfig): { readonly kubeletconfig: object } {
  return {
    kubeletconfig: {
      kind: 'KubeletConfiguration',
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      staticPodPath: config.paths.staticPods,
      ...(config.manifestUrl === undefined ? {} : { staticPodURL: config.manifestUrl }),
      address: config.listen.address,
      port: config.listen.port,
      cgroupRoot: config.cgroupRoot,
      systemReserved: config.systemReserved,
      maxPods: config.maxPods,
      podPidsLimit: config.podPidsLimit > 0 ? config.podPidsLimit : -1,
      cpuCFSQuota: config.cpuCfsQuota,
      seccompDefault: config.seccompDefault,
      clusterDNS: config.clusterDns,
      clusterDomain: config.clusterDomain,
      registerNode: config.registerNode,
      registerWithTaints: config.registerWithTaints,
      fileCheckFrequency: duration(config.fileCheckFrequencyMs),
      syncFrequency: duration(config.syncFrequencyMs),
      nodeStatusUpdateFrequency: duration(config.nodeStatusUpdateFrequencyMs),
      nodeStatusReportFrequency: duration(config.nodeStatusReportFrequencyMs),
      nodeLeaseDurationSeconds: config.nodeLeaseDurationSeconds,
      containerLogMaxSize: String(config.containerLogMaxBytes),
      containerLogMaxFiles: config.containerLogMaxFiles,
      containerLogMonitorInterval: duration(config.containerLogMonitorMs),
      imageGCHighThresholdPercent: config.imageGcHighThresholdPercent,
      imageGCLowThresholdPercent: config.imageGcLowThresholdPercent,
      imageMinimumGCAge: duration(config.imageMinimumGcAgeMs),
      maxParallelImagePulls: config.maxParallelImagePulls,
      serializeImagePulls: config.maxParallelImagePulls <= 1,
      evictionMaxPodGracePeriod: config.eviction.maxPodGraceSeconds,
      evictionPressureTransitionPeriod: duration(config.eviction.pressureTransitionMs),
      shutdownGracePeriodByPodPriority: config.shutdownPeriods.map(({ priority, seconds }) => ({
        priority,
        shutdownGracePeriodSeconds: seconds,
      })),
    },
  };
}
