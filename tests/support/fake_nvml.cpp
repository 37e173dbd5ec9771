// A library with NVML's functions for energy_test: device 0 uses 250 J between two questions; device 1 has no counter.
namespace {
unsigned long long millijoules = 1000;
int devices[2];
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index > 1) return 2;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy) {
  if (device != &devices[0]) return 3;
  *energy = millijoules;
  millijoules += 250000;
  return 0;
}
}
