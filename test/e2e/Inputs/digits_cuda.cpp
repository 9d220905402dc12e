// digits_cnn as an application uses it, compiled for a device and for the CPU, in one program: same class, same accessors.
// Prints the largest difference; without a driver, what error_msg() says.
#include CPU_HEADER
#include CUDA_HEADER

#include <cmath>
#include <cstdio>

int main() {
  constexpr int batches[] = {3, 1, 5, 3};
  cpu::Digits host;
  cuda::Digits device;
  double worst = 0, largest = 0;
  for (int batch : batches) {
    if (!host.set_batch(batch) || !device.set_batch(batch)) {
      std::printf("a batch of %d is refused, status %d: %s\n", batch, device.error_code(), device.error_msg().c_str());
      return 3;
    }
    for (int64_t i = 0; i < host.arg0_count(); ++i)
      host.arg0_data()[i] = device.arg0_data()[i] = static_cast<float>((i * 37 + batch * 11) % 17) / 16.0f;
    if (!host.Run()) {
      std::printf("CPU: %s\n", host.error_msg().c_str());
      return 1;
    }
    if (!device.Run()) {
      std::printf("status %d: %s\n", device.error_code(), device.error_msg().c_str());
      return 3;
    }
    if (host.result_count(1) != device.result_count(1) || host.result_count(0) != device.result_count(0)) {
      std::printf("sizes differ\n");
      return 1;
    }
    for (int64_t i = 0; i < host.result_count(0); ++i)
      if (host.result0_data()[i] != device.result0_data()[i]) {
        std::printf("class %lld differs\n", static_cast<long long>(i));
        return 1;
      }
    for (int64_t i = 0; i < host.result_count(1); ++i) {
      worst = std::fmax(worst, std::fabs(host.result1_data()[i] - device.result1_data()[i]));
      largest = std::fmax(largest, std::fabs(host.result1_data()[i]));
    }
  }
  std::printf("%s, largest difference %.3g of %.3g\n", worst <= 1e-5 * largest && largest > 0 ? "agrees" : "DIFFERS", worst, largest);
  return worst <= 1e-5 * largest && largest > 0 ? 0 : 1;
}
